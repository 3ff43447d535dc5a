# fish completion of gvctl, made by `gvctl completion fish`
function __gvctl_way # how the router is reached, as the line says
    set -l take
    for word in (commandline -opc)
        if set -q take[1]
            string replace -r '^~/' "$HOME/" -- $word
            set -e take[1]
            continue
        end
        switch $word
            case {{#ways_with}}{{^first}} {{/first}}--{{name}}{{/ways_with}}
                printf '%s\n' $word
                set take 1
            case '{{#ways_with}}{{^first}}' '{{/first}}--{{name}}=*{{/ways_with}}' {{#ways_without}}{{^first}} {{/first}}--{{name}}{{/ways_without}}
                printf '%s\n' $word
        end
    end
end
complete -c gvctl -f
{{#common}}
complete -c gvctl{{>option}}
{{/common}}
{{#commands}}
complete -c gvctl -n __fish_use_subcommand -a {{name}} -d '{{help}}'
{{#options}}
complete -c gvctl -n '__fish_seen_subcommand_from {{command}}'{{>option}}
{{/options}}
{{^nothing}}
complete -c gvctl -n '__fish_seen_subcommand_from {{name}}{{#words}}; and not __fish_seen_subcommand_from {{words}}{{/words}}'{{>kind}}
{{/nothing}}
{{/commands}}
