{{- define "ferret.name" -}}
{{- $name := ternary .Release.Name (printf "%s-ferret" .Release.Name) (contains "ferret" .Release.Name) -}}
{{- /* What stands behind it has at most 11 characters, and a name 63. */ -}}
{{- $name | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{- define "ferret.selector" -}}
app.kubernetes.io/name: ferret
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ferret.labels" -}}
{{ include "ferret.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Components by name, with the command of each: those that have pods. */ -}}
{{- define "ferret.components" -}}
api: [api]
{{- range $queue := list "train" "aggregate" "playground" }}
{{- $scaled := and (eq $queue "train") $.Values.autoscaling.enabled }}
{{- if or $scaled (index $.Values $queue).replicas }}
{{ $queue }}: [worker, {{ $queue }}]
{{- end }}
{{- end }}
{{- end }}

{{- /* The text of a setting. Helm reads whole numbers as floats, and would write large ones with an exponent. */ -}}
{{- define "ferret.setting" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{ printf "%.0f" . | quote }}{{- else -}}{{ toString . | quote }}{{- end -}}
{{- else -}}
{{ toString . | quote }}
{{- end -}}
{{- end }}

{{- define "ferret.apiHost" -}}
{{ include "ferret.name" . }}-api.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "ferret.container" -}}
{{- /* Arguments: root, name, resources. */ -}}
name: {{ .name }}
image: {{ printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources: {{- toYaml .resources | nindent 2 }}
volumeMounts:
  - { name: home, mountPath: /var/lib/ferret }
  - { name: tmp, mountPath: /tmp }
  - { name: secrets, mountPath: /run/secrets/ferret, readOnly: true }
  {{- if .root.Values.data.existingClaim }}
  - { name: data, mountPath: /data, readOnly: true }
  {{- end }}
{{- end }}
