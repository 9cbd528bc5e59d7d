package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// MaxWaves is the maximum number of waves of a Gate.
	MaxWaves = 16

	// RestOfTargets is the name in status.release of the last wave, which has the
	// targets that no wave in the spec matches. No wave in the spec can have this
	// name.
	RestOfTargets = "the rest"
)

// ReleasePolicy specifies the rate and the order in which targets are released
// when a Gate opens. At least one of perMinute and waves must be set.
// +kubebuilder:validation:XValidation:rule="has(self.perMinute) || has(self.waves) && size(self.waves) > 0",message="release needs perMinute or waves"
type ReleasePolicy struct {
	// perMinute is the number of targets that are released per minute, spread
	// evenly, from 1 to 60000. Namespaces take turns. Within a namespace, the
	// Certificates that expire first are released first. With waves, it applies to
	// each wave. If omitted, the rate is not limited.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	// +optional
	PerMinute int32 `json:"perMinute,omitempty"`

	// waves lists groups of targets that are released one after the other. A wave
	// begins when all targets of the previous waves are ready and its soak has
	// passed. Targets that no wave matches are released last. Within a wave, a
	// target waits for those objects in its spec.dependsOn that the Gate also
	// releases. The release stops if a target fails, if two waves match the same
	// target, if a wave matches no target, or if targets depend on each other in a
	// cycle. At most 16. If omitted, targets are released in any order.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Waves []ReleaseWave `json:"waves,omitempty"`
}

// ReleaseWave is a group of targets of a Gate that are released together.
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="a wave needs matchLabels or matchExpressions"
type ReleaseWave struct {
	// name is the name of the wave in the status, messages and metrics, such as
	// canary. Lower case letters, digits and dashes, at most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower case letters, digits and dashes, and begin and end with a letter or digit"
	// +required
	Name string `json:"name"`

	// matchLabels are labels that the targets of the wave must have, such as wave:
	// canary. At most 32.
	// +optional
	MatchLabels Labels `json:"matchLabels,omitempty"`

	// matchExpressions are label selector requirements that the targets of the
	// wave must meet in addition to matchLabels, such as {key: region, operator:
	// In, values: [eu, us]}. At most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`

	// soak is how long all targets of the wave must be ready before the next wave
	// begins, from 0s to 168h (7 days), such as 30m. Defaults to 0s.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 7 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="soak must be a duration from 0s to 168h (7 days), such as 30m"
	// +optional
	Soak *Duration `json:"soak,omitempty"`
}

// Selector returns the label selector of the wave.
func (in *ReleaseWave) Selector() *metav1.LabelSelector {
	return selectorOf(in.MatchLabels, in.MatchExpressions)
}

// ReleaseStatus is the progress of a release.
type ReleaseStatus struct {
	// total is the number of targets to release since the Gate last opened.
	Total int64 `json:"total"`

	// released is the number of those targets that are already released.
	Released int64 `json:"released"`

	// lastNamespace is the namespace of the target that got the last release
	// slot. The namespaces after it, in alphabetical order, are next.
	// +optional
	LastNamespace string `json:"lastNamespace,omitempty"`

	// nextAt is the time when the next target may be released. Missing if all
	// targets are released, if the Gate is closed, or if spec.release.perMinute is
	// not set.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`

	// waves is the progress of a release in waves. It is kept after the Gate
	// closes. Only with spec.release.waves.
	// +optional
	Waves *WavesStatus `json:"waves,omitempty"`

	// proceed is the recorded proceed request that the controller has not handled
	// yet. It takes effect as soon as all targets have been evaluated, even if
	// Flux removes the annotation proceed.gate.fluxcd.io/requestedAt before. Only
	// with spec.release.waves.
	// +optional
	Proceed *ProceedRequest `json:"proceed,omitempty"`

	// lastHandledProceed is the last handled value of the annotation
	// proceed.gate.fluxcd.io/requestedAt, cut to 128 bytes.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	LastHandledProceed string `json:"lastHandledProceed,omitempty"`
}

// ProceedRequest is a recorded request that a release in waves proceed.
type ProceedRequest struct {
	// value is the value of the annotation, cut to 128 bytes.
	// +kubebuilder:validation:MaxLength=128
	Value string `json:"value"`

	// requestedBy is the name of the requester, cut to 339 bytes. Empty if
	// unknown.
	// +kubebuilder:validation:MaxLength=339
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// message is the reason that the requester gave, cut to 512 bytes.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// recordedAt is the time when the controller recorded the request.
	RecordedAt metav1.MicroTime `json:"recordedAt"`
}

// WavesStatus is the progress of a release in waves.
type WavesStatus struct {
	// openedAt is the time when the Gate opened for this release. Missing if the
	// Gate is closed.
	// +optional
	OpenedAt *metav1.Time `json:"openedAt,omitempty"`

	// current is the name of the wave that is being released, or "the rest" for
	// the targets that no wave matches. Missing if all waves are released.
	// +optional
	Current string `json:"current,omitempty"`

	// done lists the names of the released waves, in the order of
	// spec.release.waves. At most 17.
	// +kubebuilder:validation:MaxItems=17
	// +listType=atomic
	// +optional
	Done []string `json:"done,omitempty"`

	// ready is the number of targets of the current wave that are ready, or that
	// the Gate does not release, for example because they are suspended by others.
	// +optional
	Ready int64 `json:"ready,omitempty"`

	// total is the number of targets of the current wave.
	// +optional
	Total int64 `json:"total,omitempty"`

	// readySince is the time since which all targets of the current wave and of
	// earlier waves have been ready. The soak of the current wave begins at this
	// time. Missing if a target is not ready.
	// +optional
	ReadySince *metav1.MicroTime `json:"readySince,omitempty"`

	// waitingFor lists the targets for which the next wave waits, because they are
	// not ready. Failed targets come first. At most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	WaitingFor []WaitingTarget `json:"waitingFor,omitempty"`

	// proceededPast is the last wave that the release no longer waits for because
	// of a proceed request. Targets of this and earlier waves that fail do not
	// stop the release.
	// +optional
	ProceededPast string `json:"proceededPast,omitempty"`

	// proceededAt is the time in the last proceed request that took effect since
	// the Gate opened.
	// +optional
	ProceededAt *metav1.MicroTime `json:"proceededAt,omitempty"`

	// faultsAccepted is true if a user has requested that the release proceed
	// although two waves match the same target, a wave matches no target, or
	// targets depend on each other in a cycle.
	// +optional
	FaultsAccepted bool `json:"faultsAccepted,omitempty"`
}

// WaitingTarget is a target that a release waits for.
type WaitingTarget struct {
	// kind is the kind of the target.
	Kind string `json:"kind"`

	// namespace is the namespace of the target.
	Namespace string `json:"namespace"`

	// name is the name of the target.
	Name string `json:"name"`

	// state is the state of the target: Held if this Gate holds it, HeldByOthers
	// if only other Gates hold it, Progressing if it is released but not ready, or
	// Failed.
	State string `json:"state"`

	// message is the reason why the target is not ready, in at most 256 bytes.
	// Missing if it is unknown.
	// +optional
	Message string `json:"message,omitempty"`
}
