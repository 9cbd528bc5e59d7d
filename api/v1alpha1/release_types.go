package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// MaxWaves is the number of waves that a Gate can have.
	MaxWaves = 16

	// RestOfTargets is the name in status.release of the last wave, with the
	// targets that no wave matches. No wave can have this name.
	RestOfTargets = "the rest"
)

// ReleasePolicy determines how targets are released when a Gate opens: how
// fast, or in which order, or both.
// +kubebuilder:validation:XValidation:rule="has(self.perMinute) || has(self.waves) && size(self.waves) > 0",message="release needs perMinute or waves"
type ReleasePolicy struct {
	// PerMinute is how many targets are released per minute, from 1 to 60000,
	// spread evenly. The namespaces take turns, and in each the Certificates that
	// expire soonest come first. With waves, it counts within each wave. If
	// omitted, all targets that may be released are released at once.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	// +optional
	PerMinute int32 `json:"perMinute,omitempty"`

	// Waves are groups of targets that are released one after the other. A wave is
	// released once all targets of the previous one are ready and have been ready
	// for its soak. Targets that no wave matches come last. Within a wave, a
	// target waits for the objects in its spec.dependsOn. A target that two waves
	// match, and a wave that matches no target, stop the release. At most 16. If
	// omitted, the targets have no order.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Waves []ReleaseWave `json:"waves,omitempty"`
}

// ReleaseWave is a part of the targets of a Gate.
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="a wave needs matchLabels or matchExpressions"
type ReleaseWave struct {
	// Name of the wave in the status, messages and metrics, such as canary: lower
	// case letters, digits and dashes, at most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower case letters, digits and dashes, and begin and end with a letter or digit"
	// +required
	Name string `json:"name"`

	// MatchLabels are labels that the targets of the wave have, all of them, such
	// as wave: canary. At most 32.
	// +optional
	MatchLabels Labels `json:"matchLabels,omitempty"`

	// MatchExpressions are further conditions on the labels of the targets, such
	// as {key: region, operator: In, values: [eu, us]}. All must be true. At most
	// 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`

	// Soak is how long all targets of the wave must have been ready before the
	// next wave is released, from 0s to 168h (7 days), such as 30m. Defaults to
	// 0s.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 7 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="soak must be a duration from 0s to 168h (7 days), such as 30m"
	// +optional
	Soak *Duration `json:"soak,omitempty"`
}

// Selector returns the label selector for the targets of the wave.
func (in *ReleaseWave) Selector() *metav1.LabelSelector {
	return selectorOf(in.MatchLabels, in.MatchExpressions)
}

// ReleaseStatus is the progress of a release.
type ReleaseStatus struct {
	// Total is the number of targets to release since the Gate last opened.
	Total int64 `json:"total"`

	// Released is the number of these targets that are released.
	Released int64 `json:"released"`

	// LastNamespace is the namespace of the target that was released last. A
	// target of the next namespace follows.
	// +optional
	LastNamespace string `json:"lastNamespace,omitempty"`

	// NextAt is when the next target may be released. Missing if all targets are
	// released, while the Gate is closed, or without spec.release.perMinute.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`

	// Waves is the progress of the release by waves. It is kept after the Gate has
	// closed. Only with spec.release.waves.
	// +optional
	Waves *WavesStatus `json:"waves,omitempty"`

	// Proceed is the request in the annotation proceed.gate.fluxcd.io/requestedAt
	// that the controller has recorded and not yet handled. It takes effect once
	// all targets have the desired state, even if Flux removes the annotation
	// before. Only with spec.release.waves.
	// +optional
	Proceed *ProceedRequest `json:"proceed,omitempty"`

	// LastHandledProceed is the last value of the annotation
	// proceed.gate.fluxcd.io/requestedAt that the controller handled, cut to 128
	// bytes.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	LastHandledProceed string `json:"lastHandledProceed,omitempty"`
}

// ProceedRequest is a recorded request that a release by waves proceed.
type ProceedRequest struct {
	// Value of the annotation, cut to 128 bytes.
	// +kubebuilder:validation:MaxLength=128
	Value string `json:"value"`

	// RequestedBy is the requester, cut to 339 bytes. Empty if unknown.
	// +kubebuilder:validation:MaxLength=339
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// Message is the reason that the requester gave, cut to 512 bytes.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// RecordedAt is when the controller recorded the request.
	RecordedAt metav1.MicroTime `json:"recordedAt"`
}

// WavesStatus is the progress of a release in waves.
type WavesStatus struct {
	// OpenedAt is when the Gate opened for this release. Missing once it has
	// closed.
	// +optional
	OpenedAt *metav1.Time `json:"openedAt,omitempty"`

	// Current is the name of the wave that is being released, or "the rest" for
	// the targets that no wave matches. Missing once all are released.
	// +optional
	Current string `json:"current,omitempty"`

	// Done lists the released waves in the order of spec.release.waves. At most
	// 17.
	// +kubebuilder:validation:MaxItems=17
	// +listType=atomic
	// +optional
	Done []string `json:"done,omitempty"`

	// Ready is the number of targets of the current wave that are ready.
	// +optional
	Ready int64 `json:"ready,omitempty"`

	// Total is the number of targets of the current wave.
	// +optional
	Total int64 `json:"total,omitempty"`

	// ReadySince is the time since which all targets of the current wave have been
	// ready. The soak of the wave counts from this time. Missing while a target is
	// not ready.
	// +optional
	ReadySince *metav1.MicroTime `json:"readySince,omitempty"`

	// WaitingFor lists targets that are not ready, so that the next wave waits: at
	// most 10, failed ones first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	WaitingFor []WaitingTarget `json:"waitingFor,omitempty"`

	// ProceededPast is the last wave that the release no longer waits for, because
	// of a proceed request. Failures in this wave and in earlier ones no longer
	// stop the release.
	// +optional
	ProceededPast string `json:"proceededPast,omitempty"`

	// ProceededAt is the time in the last proceed request that took effect since
	// the Gate opened.
	// +optional
	ProceededAt *metav1.MicroTime `json:"proceededAt,omitempty"`

	// FaultsAccepted is true if a user has requested that the release proceed
	// although waves overlap, match nothing, or have targets that depend on each
	// other in a cycle.
	// +optional
	FaultsAccepted bool `json:"faultsAccepted,omitempty"`
}

// WaitingTarget is a target for which a release waits.
type WaitingTarget struct {
	// Kind of the target.
	Kind string `json:"kind"`

	// Namespace of the target.
	Namespace string `json:"namespace"`

	// Name of the target.
	Name string `json:"name"`

	// State of the target: Held by this Gate, HeldByOthers by another Gate or
	// suspension, Progressing, or Failed.
	State string `json:"state"`

	// Message states why the target is not ready, in at most 256 bytes. Missing if
	// the target gives no reason.
	// +optional
	Message string `json:"message,omitempty"`
}
