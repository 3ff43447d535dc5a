 \
        '{{#argument}}*{{/argument}}--{{name}}{{#argument}}={{/argument}}[{{help}}]{{#argument}}:{{argument}}:{{>kind}}{{/argument}}'{{#short}} \
        '{{#argument}}*{{/argument}}-{{short}}[{{help}}]{{#argument}}:{{argument}}:{{>kind}}{{/argument}}'{{/short}}
