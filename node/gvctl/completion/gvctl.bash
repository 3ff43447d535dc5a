# bash completion of gvctl, made by `gvctl completion bash`
_gvctl_ask() { # what the router knows, reached as the line says
    local i way=()
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        case ${words[i]} in
        {{#ways_with}}{{^first}} | {{/first}}--{{name}}{{/ways_with}}) way+=("${words[i]}" "${words[++i]/#\~\//$HOME/}") ;;
        {{#ways_with}}{{^first}} | {{/first}}--{{name}}=*{{/ways_with}} | {{#ways_without}}{{^first}} | {{/first}}--{{name}}{{/ways_without}}) way+=("${words[i]}") ;;
        esac
    done
    gvctl "${way[@]}" --timeout 2 -o name "$1" 2>/dev/null
}
_gvctl() {
    local cur prev words=() cword line=${COMP_LINE:0:COMP_POINT} command= i take= place=0
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cword=$((${#words[@]} - 1)) cur=${words[${#words[@]} - 1]} prev=${words[cword - 1]}
    for ((i = 1; i < cword; i++)); do
        if [[ -n $take ]]; then take=; continue; fi
        case ${words[i]} in
{{#options}}
{{#argument}}
        --{{name}}) take=1 ;;
{{/argument}}
{{/options}}
        -o) take=1 ;;
        -*) ;;
        *) if [[ -z $command ]]; then command=${words[i]}; else ((++place)); fi ;;
        esac
    done
    local commands='{{#commands}}{{^first}} {{/first}}{{name}}{{/commands}}' common='{{#common}}{{^first}} {{/first}}--{{name}}{{/common}}'
    COMPREPLY=()
    case $prev in
{{#options}}
{{#argument}}
    {{#short}}-{{short}} | {{/short}}--{{name}}) {{>kind}}; return ;;
{{/argument}}
{{/options}}
    esac
    case $command:$cur in
    :-*) COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    :*) COMPREPLY=($(compgen -W "$commands" -- "$cur")) ;;
{{#commands}}
    {{name}}:-*) COMPREPLY=($(compgen -W "$common{{#options}} --{{name}}{{/options}}" -- "$cur")) ;;
    {{name}}:*) {{^nothing}}{{^file}}((place > 0)) || {{/file}}{{/nothing}}{{>kind}} ;;
{{/commands}}
    esac
    # bash has put into the word only what stands behind its last colon
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]=${COMPREPLY[i]#"${cur%"${cur##*:}"}"}
        done
    fi
}
complete -F _gvctl gvctl
