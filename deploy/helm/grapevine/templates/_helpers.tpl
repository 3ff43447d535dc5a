{{- define "grapevine.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "grapevine.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "grapevine.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "grapevine.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "grapevine.selector" -}}
app.kubernetes.io/name: {{ include "grapevine.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
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
{{- fail "clusterKey: name an existingSecret, or let it be made (create)" }}
{{- end }}
{{- end }}

{{- define "grapevine.makesKey" -}}
{{- if and .Values.clusterKey.create (not .Values.clusterKey.existingSecret) }}yes{{ end }}
{{- end }}

{{/* What the chart sets by itself, and the value that does it. */}}
{{- define "grapevine.config" -}}
{{- $own := dict
    "listen" "ports.http" "admin-listen" "ports.admin" "gossip-listen" "ports.gossip" "join" "ports.gossip"
    "cluster-key-file" "clusterKey" "drain-delay" "drain.delaySeconds" "drain-timeout" "drain.timeoutSeconds"
    "replica-kubernetes" "engines.kubernetes" }}
{{- range $name, $value := .Values.config }}
{{- if hasKey $own $name }}
{{- fail (printf "config.%s is made by the chart: set %s" $name (get $own $name)) }}
{{- end }}
{{- end -}}
listen: 0.0.0.0:{{ .Values.ports.http }}
admin-listen: 0.0.0.0:{{ .Values.ports.admin }}
gossip-listen: 0.0.0.0:{{ .Values.ports.gossip }}
join: {{ include "grapevine.fullname" . }}-gossip:{{ .Values.ports.gossip }}
cluster-key-file: /etc/grapevine/key/{{ .Values.clusterKey.entry }}
drain-delay: {{ .Values.drain.delaySeconds }}s
drain-timeout: {{ .Values.drain.timeoutSeconds }}s
{{- with .Values.engines.kubernetes }}
replica-kubernetes:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}
