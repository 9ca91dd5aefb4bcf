{{- define "service.name" -}}
{{- printf "%s" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "service.selector" -}}
app.kubernetes.io/name: task-scheduling-service
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "service.labels" -}}
{{ include "service.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "service.secretName" -}}
{{- .Values.secret.existing | default (include "service.name" .) -}}
{{- end -}}

{{- define "service.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* A pod of one role, or of all of them. Takes a dict of root, role (a name, or "all") and resources. */}}
{{- define "service.pod" -}}
{{- $root := .root -}}
automountServiceAccountToken: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
# Running work gets up to 25 s after SIGTERM.
terminationGracePeriodSeconds: 40
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
containers:
  - name: service
    image: {{ include "service.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: { drop: [ALL] }
    env:
      - { name: JWT_SECRET_KEY_FILE, value: /secrets/jwt-secret-key }
      - { name: SVC_SECRETS_KEY_FILE, value: /secrets/secrets-key }
      - name: SVC_ADMIN_SECRET
        valueFrom:
          secretKeyRef:
            name: {{ include "service.secretName" $root }}
            key: admin-secret
            optional: true
      {{- if eq $root.Values.mode "distributed" }}
      - { name: SVC_EVENT_STORE_URL_FILE, value: /secrets/event-store-url }
      - { name: SVC_READ_MODEL_URL_FILE, value: /secrets/read-model-url }
      - { name: SVC_ROLES, value: {{ .role }} }
      {{- end }}
      {{- range $name, $value := $root.Values.settings }}
      - { name: {{ $name }}, value: {{ $value | toString | quote }} }
      {{- end }}
    ports:
      - { name: http, containerPort: 8080 }
    startupProbe:
      httpGet: { path: /health/live, port: http }
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: { path: /health/live, port: http }
      periodSeconds: 10
      timeoutSeconds: 5
    readinessProbe:
      httpGet: { path: /health/ready, port: http }
      periodSeconds: 5
      timeoutSeconds: 5
    resources: {{- toYaml .resources | nindent 6 }}
    volumeMounts:
      - { name: data, mountPath: /data }
      - { name: tmp, mountPath: /tmp }
      - { name: secrets, mountPath: /secrets, readOnly: true }
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: secrets
    secret:
      secretName: {{ include "service.secretName" $root }}
      defaultMode: 0440
  {{- if eq $root.Values.mode "distributed" }}
  - name: data
    emptyDir: {}
  {{- end }}
{{- end -}}
