{{- define "grapevine.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "grapevine.fullname" -}}
{{- $name := include "grapevine.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if regexMatch "^[0-9]" .Release.Name }}{{/* which a Service must not begin with */}}
{{- printf "%s-%s" $name .Release.Name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "grapevine.selector" -}}
app.kubernetes.io/name: {{ include "grapevine.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "grapevine.labels" -}}
{{ include "grapevine.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "grapevine.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "grapevine.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: which one, where serviceAccount.create is false?" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "grapevine.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "grapevine.keySecret" -}}
{{- if .Values.clusterKey.existingSecret }}
{{- .Values.clusterKey.existingSecret }}
{{- else if .Values.clusterKey.create }}
{{- include "grapevine.fullname" . }}-key
{{- else }}
{{- fail "clusterKey: set existingSecret, or set create: true" }}
{{- end }}
{{- end }}

{{- define "grapevine.makesKey" -}}
{{- if and .Values.clusterKey.create (not .Values.clusterKey.existingSecret) }}yes{{ end }}
{{- end }}

{{/* Where probes and Prometheus ask: the name of the port. */}}
{{- define "grapevine.probePort" -}}
{{- if .Values.ports.probe }}probe{{ else }}admin{{ end }}
{{- end }}

{{/* The namespaces of the services of engines, as a YAML list. */}}
{{- define "grapevine.engineNamespaces" -}}
{{- $spaces := list }}
{{- range .Values.engines.kubernetes }}
{{- $service := splitList "#" . | first | trimPrefix "https://" }}{{/* labels may have a / of their own */}}
{{- $spaces = append $spaces (contains "/" $service | ternary (splitList "/" $service | first) $.Release.Namespace) }}
{{- end }}
{{- uniq $spaces | toYaml }}
{{- end }}

{{/* Secrets as folders below /etc/grapevine: name of the volume -> name of the Secret. */}}
{{- define "grapevine.secrets" -}}
{{- with .Values.tls.secretName }}
tls: {{ . }}
{{- end }}
{{- with .Values.tls.ticketSecretName }}
tls-tickets: {{ . }}
{{- end }}
{{- with .Values.adminTls.secretName }}
admin-tls: {{ . }}
{{- end }}
{{- with .Values.adminToken.secretName }}
admin-token: {{ . }}
{{- end }}
{{- with .Values.clientKeys.secretName }}
client-keys: {{ . }}
{{- end }}
{{- with .Values.engineKey.secretName }}
engine-key: {{ . }}
{{- end }}
{{- end }}

{{/* The settings that name their files. */}}
{{- define "grapevine.secretSettings" -}}
{{- if .Values.tls.secretName }}
tls-cert: /etc/grapevine/tls/tls.crt
tls-key: /etc/grapevine/tls/tls.key
{{- end }}
{{- if .Values.tls.ticketSecretName }}
tls-ticket-key-file: /etc/grapevine/tls-tickets/tickets.key
{{- end }}
{{- if .Values.adminTls.secretName }}
admin-tls-cert: /etc/grapevine/admin-tls/tls.crt
admin-tls-key: /etc/grapevine/admin-tls/tls.key
{{- end }}
{{- if and .Values.adminToken.secretName .Values.adminToken.entry }}
admin-token-file: /etc/grapevine/admin-token/{{ .Values.adminToken.entry }}
{{- end }}
{{- if and .Values.adminToken.secretName .Values.adminToken.readEntry }}
admin-read-token-file: /etc/grapevine/admin-token/{{ .Values.adminToken.readEntry }}
{{- end }}
{{- if .Values.clientKeys.secretName }}
client-keys-file: /etc/grapevine/client-keys/{{ .Values.clientKeys.entry }}
{{- end }}
{{- if .Values.engineKey.secretName }}
replica-api-key-file: /etc/grapevine/engine-key/{{ .Values.engineKey.entry }}
{{- end }}
{{- end }}

{{/* What cannot go together. */}}
{{- define "grapevine.check" -}}
{{- $config := .Values.config | default dict }}
{{- $adminTls := or .Values.adminTls.secretName (hasKey $config "admin-tls-cert") }}
{{- if and $adminTls (not .Values.ports.probe) }}
{{- fail "adminTls: set ports.probe (9091). Probes and Prometheus need a port without TLS; with ports.probe=0 they use the admin port, and no pod becomes ready" }}
{{- end }}
{{- if and .Values.tls.ticketSecretName (not .Values.tls.secretName) }}
{{- fail "tls.ticketSecretName: session tickets require TLS: set tls.secretName" }}
{{- end }}
{{- if and .Values.adminToken.secretName (not (or .Values.adminToken.entry .Values.adminToken.readEntry)) }}
{{- fail "adminToken.entry: name the entry of the Secret that is the token (readEntry: the token for reading)" }}
{{- end }}
{{- if and (include "grapevine.makesKey" .) (ne .Values.clusterKey.entry "cluster.key") }}
{{- fail (printf "clusterKey.entry: %s requires existingSecret: the Job that creates the Secret always names the entry cluster.key" .Values.clusterKey.entry) }}
{{- end }}
{{- $ports := list (int .Values.ports.http) (int .Values.ports.admin) (int .Values.ports.gossip) }}
{{- if has (int .Values.ports.probe) $ports }}
{{- fail (printf "ports.probe: another port of the router uses %v: choose a free one" .Values.ports.probe) }}
{{- end }}
{{- if .Values.ports.kvEvents }}
{{- if has (int .Values.ports.kvEvents) (append $ports (int .Values.ports.probe)) }}
{{- fail (printf "ports.kvEvents: another port of the router uses %v: choose a free one" .Values.ports.kvEvents) }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.engines) (not .Values.engines.kubernetes) }}
{{- fail "networkPolicy.engines: list the engines that may connect to ports.kvEvents, because engines.kubernetes names no namespace" }}
{{- end }}
{{- end }}
{{- if and .Values.state.enabled (hasKey $config "state-dir") }}
{{- fail "config.state-dir: state.enabled already sets it: remove one of the two" }}
{{- end }}
{{- end }}

{{/* Where it listens: on IPv4 alone, or by [::] on IPv6 and IPv4. */}}
{{- define "grapevine.any" -}}
{{- if eq (default "IPv4" .Values.ipFamily) "IPv4" }}0.0.0.0{{ else }}[::]{{ end }}
{{- end }}

{{/* The addresses of a Service; those of the cluster's own choice where it is IPv4. */}}
{{- define "grapevine.families" -}}
{{- $family := default "IPv4" .Values.ipFamily }}
{{- if eq $family "IPv6" }}
ipFamilyPolicy: SingleStack
ipFamilies: [IPv6]
{{- else if eq $family "dual" }}
ipFamilyPolicy: PreferDualStack
{{- end }}
{{- end }}

{{/* A router computes in one thread, and the autoscaler counts per cent of what is requested. */}}
{{- define "grapevine.cpuUtilization" -}}
{{- $cpu := dig "requests" "cpu" "" .Values.resources | toString }}
{{- if not $cpu }}
{{- fail "autoscaling: set resources.requests.cpu, because cpuUtilization is a percentage of it" }}
{{- end }}
{{- $milli := ternary (trimSuffix "m" $cpu | float64) (mulf (float64 $cpu) 1000) (hasSuffix "m" $cpu) }}
{{- if le $milli 0.0 }}
{{- fail (printf "resources.requests.cpu: the autoscaler needs more than 0, not %s" $cpu) }}
{{- end }}
{{- $asked := int .Values.autoscaling.cpuUtilization }}
{{- if eq $asked 0 }}
{{- divf 70000.0 $milli | floor | int | max 1 }}
{{- else if gt (mulf $asked $milli) 90000.0 }}
{{- fail (printf "autoscaling.cpuUtilization: %d %% of %s is more than 0.9 of a core. A router has one thread, so the autoscaler would never add one. Set 0, which means 0.7 of a core" $asked $cpu) }}
{{- else }}
{{- $asked }}
{{- end }}
{{- end }}

{{/* What the chart sets by itself, and the value that does it. */}}
{{- define "grapevine.config" -}}
{{- $own := dict
    "listen" "ports.http" "admin-listen" "ports.admin" "gossip-listen" "ports.gossip" "join" "ports.gossip"
    "cluster-key-file" "clusterKey" "drain-delay" "drain.delaySeconds" "drain-timeout" "drain.timeoutSeconds"
    "replica-kubernetes" "engines.kubernetes" "probe-listen" "ports.probe"
    "kv-events-listen" "ports.kvEvents" }}
{{- $values := dict "tls-cert" "tls.secretName" "tls-key" "tls.secretName" "tls-ticket-key-file" "tls.ticketSecretName"
    "admin-tls-cert" "adminTls.secretName" "admin-tls-key" "adminTls.secretName" "admin-token-file" "adminToken.entry"
    "admin-read-token-file" "adminToken.readEntry" "client-keys-file" "clientKeys.secretName"
    "replica-api-key-file" "engineKey.secretName" }}
{{- range $name, $path := include "grapevine.secretSettings" . | fromYaml }}
{{- $_ := set $own $name (get $values $name) }}
{{- end }}
{{- range $name, $value := .Values.config }}
{{- if hasKey $own $name }}
{{- fail (printf "config.%s: set %s instead: the chart makes this setting" $name (get $own $name)) }}
{{- end }}
{{- end -}}
{{- $any := include "grapevine.any" . -}}
listen: "{{ $any }}:{{ .Values.ports.http }}"
admin-listen: "{{ $any }}:{{ .Values.ports.admin }}"
{{- with .Values.ports.probe }}
probe-listen: "{{ $any }}:{{ . }}"
{{- end }}
{{- with .Values.ports.kvEvents }}
kv-events-listen: "{{ $any }}:{{ . }}"
{{- end }}
gossip-listen: "{{ $any }}:{{ .Values.ports.gossip }}"
join: {{ include "grapevine.fullname" . }}-gossip:{{ .Values.ports.gossip }}
cluster-key-file: /etc/grapevine/key/{{ .Values.clusterKey.entry }}
drain-delay: {{ .Values.drain.delaySeconds }}s
drain-timeout: {{ .Values.drain.timeoutSeconds }}s
{{- include "grapevine.secretSettings" . }}
{{- with .Values.engines.kubernetes }}
replica-kubernetes:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}
