# Sourced. What docs/how-to/secure.md tells to type, to be run as it is written.

page_commands() { # page_commands HEADING: of the part below it
    awk -v heading="### $1" '/^##/ { on = $0 == heading; next }
        /^```/ { code = on && /^```sh/; next }
        code' docs/how-to/secure.md
}
page_yaml() { # page_yaml HEADING
    awk -v heading="### $1" '/^##/ { on = $0 == heading; next }
        /^```/ { code = on && /^```yaml/; next }
        code' docs/how-to/secure.md
}
