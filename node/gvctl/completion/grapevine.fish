# fish completion of grapevine, made by `gvctl completion fish --for grapevine`
complete -c grapevine -f
complete -c grapevine -l help -d 'this text'
complete -c grapevine -l version -d 'print the version'
complete -c grapevine -l check-config -d 'print the effective settings and their origins'
{{#settings}}
complete -c grapevine{{>option}}
{{/settings}}
