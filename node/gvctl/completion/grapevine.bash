# bash completion of grapevine, made by `gvctl completion bash --for grapevine`
_grapevine() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $cur == = ]]; then cur=
    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
    COMPREPLY=()
    case $prev in
{{#settings}}
    --{{name}}) {{>kind}}; return ;;
{{/settings}}
    esac
    COMPREPLY=($(compgen -W '--help --version --check-config {{#settings}}--{{name}} {{/settings}}' -- "$cur"))
}
complete -F _grapevine grapevine
