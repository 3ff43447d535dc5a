#compdef grapevine
# zsh completion of grapevine, made by `gvctl completion zsh --for grapevine`
_grapevine() {
    _arguments \
        '--help[this text]' \
        '--version[print the version]' \
        '--check-config[print the effective settings and their origins]'{{#settings}}{{>option}}{{/settings}}
}
if [[ $funcstack[1] == _grapevine ]]; then _grapevine "$@"; else compdef _grapevine grapevine; fi
