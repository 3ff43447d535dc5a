#compdef gvctl
# zsh completion of gvctl, made by `gvctl completion zsh`
_gvctl_ask() { # what the router knows, reached as the line says
    # _arguments puts options of compadd before the command that is asked
    local -a names way
    local i
    for ((i = 2; i < $#line_words; i++)); do
        case $line_words[i] in
        {{#ways_with}}{{^first}}|{{/first}}--{{name}}{{/ways_with}}) way+=($line_words[i] ${${(Q)line_words[++i]}/#\~\//$HOME/}) ;;
        {{#ways_with}}{{^first}}|{{/first}}--{{name}}=*{{/ways_with}}|{{#ways_without}}{{^first}}|{{/first}}--{{name}}{{/ways_without}}) way+=(${(Q)line_words[i]}) ;;
        esac
    done
    names=(${(f)"$(gvctl $way --timeout 2 -o name ${@[-1]} 2>/dev/null)"})
    compadd "${@[1,-2]}" -a names
}
_gvctl_commands() {
    local -a commands
    commands=(
{{#commands}}
        '{{name}}:{{help}}'
{{/commands}}
    )
    _describe command commands
}
_gvctl() {
    local state line
    typeset -A opt_args
    local -a line_words
    line_words=("${words[@]}")
    local -a common
    common=({{#common}}{{>option}}{{/common}})
    _arguments -C $common ': :_gvctl_commands' '*:: :->argument'
    [[ $state == argument ]] || return
    case $words[1] in
{{#commands}}
    {{name}}) _arguments $common{{#options}}{{>option}}{{/options}}{{^nothing}} '1:{{^any_command}}argument{{/any_command}}{{#any_command}}command{{/any_command}}:{{>kind}}'{{/nothing}} ;;
{{/commands}}
    esac
}
if [[ $funcstack[1] == _gvctl ]]; then _gvctl "$@"; else compdef _gvctl gvctl; fi
