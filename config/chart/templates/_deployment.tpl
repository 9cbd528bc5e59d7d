{{- /* The Deployment of the controller, as the add-ons that are chosen change it, or that of a shard. The values change both. */}}
{{- define "gating-controller.deployment" }}
{{- $spec := .deployment.spec.template.spec }}
{{- $controller := first $spec.containers }}
{{- $values := .root.Values }}
{{- if eq .deployment.metadata.name "gating-controller" }}
  {{- range $change := .chosen }}
    {{- $_ := set $controller "args" (concat $controller.args ($change.args | default list)) }}
    {{- $_ := set $controller "ports" (concat $controller.ports ($change.ports | default list)) }}
    {{- with $change.replicas }}{{ $_ := set $.deployment.spec "replicas" (int .) }}{{ end }}
    {{- with $change.topologySpreadConstraints }}{{ $_ := set $spec "topologySpreadConstraints" . }}{{ end }}
  {{- end }}
{{- end }}
{{- with ($values.zoneinfo | default dict).configMap }}
  {{- $mount := dict "name" "zoneinfo" "mountPath" "/zoneinfo" "readOnly" true }}
  {{- $_ := set $controller "args" (append $controller.args "--zoneinfo=/zoneinfo/zoneinfo.zip") }}
  {{- $_ := set $controller "volumeMounts" (append ($controller.volumeMounts | default list) $mount) }}
  {{- $_ := set $spec "volumes" (append ($spec.volumes | default list) (dict "name" "zoneinfo" "configMap" (dict "name" .))) }}
{{- end }}
{{- $_ := set $controller "args" (concat $controller.args ($values.extraArgs | default list)) }}
{{- $image := splitList ":" $controller.image }}
{{- $own := $values.image | default dict }}
{{- $name := printf "%s:%s" ($own.repository | default (initial $image | join ":")) ($own.tag | default (last $image) | toString) }}
{{- with $own.digest }}{{ $name = printf "%s@%s" $name . }}{{ end }}
{{- $_ := set $controller "image" $name }}
{{- with $own.pullSecrets }}{{ $_ := set $spec "imagePullSecrets" . }}{{ end }}
{{- with $values.resources }}{{ $_ := set $controller "resources" . }}{{ end }}
{{- toYaml .deployment }}
{{- end }}
