{{- define "gvList" -}}
{{- $gv := first . -}}
{{- $pages := dict "Gate" "gates.md" "GateException" "gateexceptions.md" "GatedSource" "gatedsources.md" "GateReceiver" "gatereceivers.md"
  "CalendarFeed" "calendarfeeds.md" "MachineCertificateRefresh" "../guides/node-certificates.md" -}}
# API

<!-- Generated from api/v1alpha1 by "make generate". Do not edit it. -->

Every field of every kind in `{{ $gv.GroupVersionString }}`, with its type, default and bounds. The pages of the kinds say how the
fields work together.

`kubectl explain gate.spec.openPeriods` prints the same text in a terminal. [Stability](stability.md) says what may change.

| kind | short name | page |
|---|---|---|
{{- range $kind := $gv.SortedKinds }}
{{- with index ($gv.TypeForKind $kind).Markers "kubebuilder:resource" }}
{{- $page := get $pages $kind }}{{ if not $page }}{{ fail (print "page.tpl has no page of " $kind) }}{{ end }}
| [{{ $kind }}](#{{ lower $kind }}) | {{ range (first .).ShortName }}`{{ . }}`{{ end }} | [{{ $page }}]({{ $page }}) |
{{- end }}
{{- end }}
{{ range $gv.SortedTypes }}{{ if hasKey $pages .Name }}{{ template "type" . }}{{ end }}{{ end }}
{{- range $gv.SortedTypes }}{{ if and (markdownShouldRenderType .) (not .GVK) }}{{ template "type" . }}{{ end }}{{ end }}
{{- end -}}

{{- define "type" }}
## {{ .Name }}

{{ template "text" .Doc }}
{{- with index .Markers "kubebuilder:printcolumn" }}

`kubectl get` has the columns {{ range $i, $c := . }}{{ if $i }}, {{ end }}`{{ upper $c.Name }}`{{ if $c.Priority }} (with `-o wide`){{ end }}{{ end }}.
{{- end }}
{{- if not .GVK }}{{ with .SortedReferences }}

Used by {{ range $i, $r := . }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}.
{{- end }}{{ end }}
{{- if not .Members }}

{{ template "bounds" (dict "of" . "above" list) }}
{{- else }}
{{- with index .Markers "kubebuilder:validation:XValidation" }}

The API server refuses mistakes with these messages:
{{ range . }}
- {{ template "text" .Message }}
{{- end }}
{{- end }}

| field | type | default | bounds | |
|---|---|---|---|---|
{{- range .Members }}
{{- $above := list }}{{ if .Type.Members }}{{ $above = index .Type.Markers "kubebuilder:validation:XValidation" }}{{ end }}
{{- if not (and $.GVK (has .Name (list "apiVersion" "kind" "metadata"))) }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ if .Default }}`{{ .Default }}`{{ else if has "Required: {}" .Validation }}required{{ end }} | {{ template "bounds" (dict "of" . "above" $above) }} | {{ template "text" .Doc }} |
{{- end }}
{{- end }}
{{- end }}
{{ end -}}

{{- /* bounds returns those of a field or a type, without rules above, which the section of an object lists. */ -}}
{{- define "bounds" -}}
{{- $all := list }}{{ $markers := .of.Markers }}{{ $above := .above }}
{{- range .of.Validation }}{{ if not (regexMatch "^(Optional|Required|Type|items:XValidation):" .) }}{{ $all = append $all . }}{{ end }}{{ end }}
{{- range list "kubebuilder:validation:XValidation" "kubebuilder:validation:items:XValidation" }}
{{- range index $markers . }}{{ if not (has . $above) }}{{ $all = append $all .Message }}{{ end }}{{ end }}
{{- end }}
{{- template "text" (join "; " $all) -}}
{{- end -}}

{{- define "text" -}}
{{ . | replace "<" "&lt;" | replace "\n\n" "<br>" | replace "\n" " " | replace "|" "\\|" | replace "*" "\\*" | replace "_" "\\_" }}
{{- end -}}
