{{#nothing}} {{/nothing}}{{#file}}_files{{/file}}{{#words}}({{words}}){{/words}}{{#asked}}_gvctl_ask {{asked}}{{/asked}}{{#any_command}}_gvctl_commands{{/any_command}}
