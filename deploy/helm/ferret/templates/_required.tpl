{{- /* What the schema cannot say, each in words that name the value. The first template that is rendered asks. */ -}}
{{- define "ferret.required" -}}
{{- $_ := required "image.repository is needed: the image built from Ferret's Dockerfile, e.g. registry.example.org/ferret" .Values.image.repository -}}
{{- $_ := required "publicUrl is needed: the address that participants and browsers use, e.g. https://ferret.example.org" .Values.publicUrl -}}
{{- $_ := required "secret.name is needed: a Secret with database_url, broker_url and admin_token" .Values.secret.name -}}
{{- $_ := required "storageUrl is needed: file:///var/lib/ferret/storage with persistence.enabled, or s3://bucket/prefix" .Values.storageUrl -}}
{{- $bucket := hasPrefix "s3://" .Values.storageUrl -}}
{{- if not (or $bucket .Values.persistence.enabled) -}}
{{- fail "persistence.enabled must be true for a storageUrl of file://: all pods read and write the same files" -}}
{{- end -}}
{{- if and (gt (int .Values.api.replicas) 1) (not .Values.persistence.enabled) -}}
{{- fail "persistence.enabled must be true for more than one of api.replicas: uploads in parts grow in the home, whichever of them gets the next part" -}}
{{- end -}}
{{- if and (has "s3_credentials" .Values.secret.also) (not $bucket) -}}
{{- fail "secret.also names s3_credentials, but storageUrl is no s3://" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.trustedProxies) -}}
{{- fail "trustedProxies is needed with an ingress: the network of the controller's pods, e.g. [10.244.0.0/16]; else all clients count as one, and cookies are not Secure" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (not .Values.autoscaling.token.secretName) -}}
{{- fail "autoscaling.token.secretName is needed: a Secret with a token that reads /metrics only; docs/operators/kubernetes.md makes it" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.from) (or .Values.ingress.enabled .Values.autoscaling.enabled) -}}
{{- fail "networkPolicy.from is needed: the peers that reach the API, such as the namespaces of the ingress controller and of KEDA" -}}
{{- end -}}
{{- end }}
