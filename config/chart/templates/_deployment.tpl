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
{{- $_ := set $controller "args" (concat $controller.args $values.extraArgs) }}
{{- $image := splitList ":" $controller.image }}
{{- $repository := $values.image.repository | default (initial $image | join ":") }}
{{- $_ := set $controller "image" (printf "%s:%s" $repository ($values.image.tag | default (last $image))) }}
{{- with $values.resources }}{{ $_ := set $controller "resources" . }}{{ end }}
{{- toYaml .deployment }}
{{- end }}
