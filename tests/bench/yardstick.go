package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// writesAtOnce is the default number of concurrent writes of targets per Gate, gatesAtOnce the default number of concurrent Gates.
	writesAtOnce = 16
	gatesAtOnce  = 4
)

// bare is a client that sends the patches of the controller without decisions.
type bare struct {
	flux, gating, core rest.Interface
	// watcher is for the watch that every controller needs.
	watcher dynamic.Interface
}

// newBare returns a client that is the same user as the controller.
func (b *bench) newBare() (*bare, error) {
	path, err := b.cluster.KubeconfigFor("system:serviceaccount:"+harness.RuntimeNamespace+":gating-controller",
		"system:serviceaccounts", "system:authenticated")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	group := func(gv schema.GroupVersion) (rest.Interface, error) {
		config := unlimited(config)
		config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &gv, "/apis", scheme.Codecs.WithoutConversion()
		if gv.Group == "" {
			config.APIPath = "/api"
		}
		return rest.RESTClientFor(config)
	}
	c := &bare{}
	if c.flux, err = group(kustomizations.GroupVersion()); err != nil {
		return nil, err
	}
	if c.gating, err = group(v1alpha1.GroupVersion); err != nil {
		return nil, err
	}
	if c.core, err = group(corev1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	c.watcher, err = dynamic.NewForConfig(unlimited(config))
	return c, err
}

// watch keeps a copy of all targets with the informer of client-go, until it is stopped.
func (c *bare) watch(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	informers := dynamicinformer.NewDynamicSharedInformerFactory(c.watcher, 0)
	informer := informers.ForResource(kustomizations).Informer()
	informers.Start(ctx.Done())
	stop = func() {
		cancel()
		informers.Shutdown()
	}
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		return nil, errors.New("the yardstick cannot read the targets")
	}
	return stop, nil
}

// patch is one of the requests of a transition.
type patch struct {
	kind        types.PatchType
	subresource string
	body        map[string]any
}

// patches are the patches of an object in order, each on the version that the previous one created.
type patches struct {
	key     client.ObjectKey
	version string
	uid     types.UID
	patches []patch
}

// work has the patches for a Gate, before and after those of its targets.
type work struct {
	gate          client.ObjectKey
	uid           types.UID
	before, after []patch
	// events is the number of events to post, about targets first.
	events  int
	targets []patches
}

// send sends everything. It returns how long that took, and the time until all targets were held or released. Meanwhile it posts the events
// one after the other, as the controller does. Events that are left at the end do not count.
func (c *bare) send(ctx context.Context, todo []work) (took, last time.Duration, err error) {
	begin := time.Now()
	posting, stop := context.WithCancel(ctx)
	posted := make(chan error, 1)
	go func() { posted <- c.postEvents(posting, todo) }()
	applied, err := c.sendPatches(ctx, todo)
	took, last = time.Since(begin), applied.Sub(begin)
	stop()
	if postErr := <-posted; !errors.Is(postErr, context.Canceled) {
		err = errors.Join(err, postErr)
	}
	return took, last, err
}

// postEvents posts as many events as the controller does.
func (c *bare) postEvents(ctx context.Context, todo []work) error {
	for _, w := range todo {
		for _, about := range w.involved() {
			now := metav1.Now()
			event := &corev1.Event{
				TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
				ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
				InvolvedObject: about,
				Reason:         v1alpha1.GateClosedReason, Message: "Held by gate '" + w.gate.String() + "': closed on request.",
				Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now, ReportingController: v1alpha1.FieldManager,
			}
			if err := c.core.Post().Namespace(about.Namespace).Resource("events").Body(mustMarshal(event)).Do(ctx).Error(); err != nil {
				return err
			}
		}
	}
	return nil
}

// involved returns the involved objects of the events of a Gate, one for each event: its targets, and the Gate for the remaining ones.
func (w *work) involved() []corev1.ObjectReference {
	var all []corev1.ObjectReference
	for _, t := range w.targets[:min(len(w.targets), w.events)] {
		all = append(all, corev1.ObjectReference{APIVersion: kustomizeVersion, Kind: kustomization, Namespace: t.key.Namespace, Name: t.key.Name, UID: t.uid})
	}
	gate := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Gate", Namespace: w.gate.Namespace, Name: w.gate.Name, UID: w.uid}
	return append(all, slices.Repeat([]corev1.ObjectReference{gate}, w.events-len(all))...)
}

// sendPatches sends the patches before, then those that hold or release all targets, then their conditions, and then the patches after. It
// returns when all targets were held or released.
func (c *bare) sendPatches(ctx context.Context, todo []work) (applied time.Time, err error) {
	if err := inParallel(gatesAtOnce, todo, func(w work) error { return c.patchGate(ctx, w.gate, w.before) }); err != nil {
		return applied, err
	}
	var targets []*patches
	for i := range todo {
		for k := range todo[i].targets {
			targets = append(targets, &todo[i].targets[k])
		}
	}
	for _, status := range []bool{false, true} {
		if err := inParallel(writesAtOnce, targets, func(t *patches) error { return c.patchTarget(ctx, t, status) }); err != nil {
			return applied, err
		}
		if !status {
			applied = time.Now()
		}
	}
	return applied, inParallel(gatesAtOnce, todo, func(w work) error { return c.patchGate(ctx, w.gate, w.after) })
}

func (c *bare) patchGate(ctx context.Context, key client.ObjectKey, patches []patch) error {
	for _, p := range patches {
		if _, err := do(ctx, c.gating, "gates", key, p); err != nil {
			return err
		}
	}
	return nil
}

// patchTarget sends the patches of a target: those of its status, or the others.
func (c *bare) patchTarget(ctx context.Context, target *patches, status bool) error {
	for _, p := range target.patches {
		if (p.subresource != "") != status {
			continue
		}
		metadata := map[string]any{"resourceVersion": target.version}
		if p.kind == types.ApplyPatchType {
			metadata["name"], metadata["namespace"], metadata["uid"] = target.key.Name, target.key.Namespace, string(target.uid)
		}
		if annotations := p.body["annotations"]; annotations != nil {
			metadata["annotations"] = annotations
		}
		body := map[string]any{"metadata": metadata}
		for key, value := range p.body {
			if key != "annotations" {
				body[key] = value
			}
		}
		p.body = body
		version, err := do(ctx, c.flux, kustomizations.Resource, target.key, p)
		for tries := 0; err != nil && !isRefused(err) && tries < maxTries; tries++ {
			version, err = c.again(ctx, target, p)
		}
		if err != nil {
			return err
		}
		target.version = version
	}
	return nil
}

// maxTries bounds the tries of a patch, so that one lost response does not end a run of an hour.
const maxTries = 3

// isRefused returns whether the API server reports that it has refused a write.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// again repeats a patch whose response was lost, unless it was applied.
func (c *bare) again(ctx context.Context, target *patches, p patch) (string, error) {
	var latest metav1.PartialObjectMetadata
	raw, err := c.flux.Get().Resource(kustomizations.Resource).Namespace(target.key.Namespace).Name(target.key.Name).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(raw, &latest)
	}
	if err != nil || latest.ResourceVersion != target.version {
		return latest.ResourceVersion, err
	}
	return do(ctx, c.flux, kustomizations.Resource, target.key, p)
}

func do(ctx context.Context, c rest.Interface, resource string, key client.ObjectKey, p patch) (string, error) {
	accept := "application/json"
	if resource == kustomizations.Resource {
		accept += ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1" // as the controller requests
	}
	request := c.Patch(p.kind).Resource(resource).Namespace(key.Namespace).Name(key.Name).
		Param("fieldManager", v1alpha1.FieldManager).SetHeader("Accept", accept).Body(mustMarshal(p.body))
	if p.subresource != "" {
		request = request.SubResource(p.subresource)
	}
	if p.kind == types.ApplyPatchType {
		request = request.Param("force", "true")
	}
	raw, err := request.Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	var patched metav1.PartialObjectMetadata
	return patched.ResourceVersion, json.Unmarshal(raw, &patched)
}

// copied has the writes of the controller for the yardstick to repeat: the objects of a fleet after each kind of transition, and the number
// of writes.
type copied struct {
	fleet   *fleet
	objects map[bool]map[client.ObjectKey]*unstructured.Unstructured
	gates   map[bool]map[client.ObjectKey]*v1alpha1.Gate
	writes  map[bool]calls
}

func newCopied(f *fleet) *copied {
	return &copied{
		fleet: f, objects: map[bool]map[client.ObjectKey]*unstructured.Unstructured{},
		gates: map[bool]map[client.ObjectKey]*v1alpha1.Gate{}, writes: map[bool]calls{},
	}
}

// work returns the same patches for a transition: as many of each kind as the API server has counted, with the content that the controller
// wrote. The objects are the current ones.
func (c *copied) work(now map[client.ObjectKey]*unstructured.Unstructured, governs func(gate client.ObjectKey) []client.ObjectKey, closed bool) []work {
	// The number of patches is rounded. Whether as many were sent is counted afterwards.
	per := func(kinds ...call) int {
		n := 0.0
		for _, kind := range kinds {
			n += c.writes[closed][kind]
		}
		if kinds[0].resource == "gates" {
			return int(math.Round(n / float64(len(c.fleet.gates))))
		}
		return int(math.Round(n / float64(len(c.fleet.targets))))
	}
	merged := per(call{"PATCH", "kustomizations", "status"})
	appliedStatus := per(call{"APPLY", "kustomizations", "status"})
	applied := per(call{"APPLY", "kustomizations", ""}, call{"PATCH", "kustomizations", ""})
	ofGate := per(call{"PATCH", "gates", "status"})
	events := c.writes[closed][call{"POST", "events", ""}]
	var todo []work
	for _, gate := range c.fleet.gates {
		w := work{gate: gate, uid: c.gates[closed][gate].UID, events: int(math.Round(events / float64(len(c.fleet.gates))))}
		for i := range ofGate {
			p := patch{kind: types.MergePatchType, subresource: "status", body: gatePatch(c.gates[closed][gate], ofGate-1-i)}
			if i < ofGate/2 {
				w.before = append(w.before, p)
			} else {
				w.after = append(w.after, p)
			}
		}
		for _, key := range governs(gate) {
			after, obj := c.objects[closed][key], now[key]
			hold, status := holdPatch(after), statusPatch(after)
			target := patches{key: key, version: obj.GetResourceVersion(), uid: obj.GetUID()}
			target.patches = slices.Repeat([]patch{{types.ApplyPatchType, "", hold}}, applied)
			conditions := append(slices.Repeat([]patch{{types.MergePatchType, "status", status}}, merged),
				slices.Repeat([]patch{{types.ApplyPatchType, "status", apiOf(after, status)}}, appliedStatus)...)
			target.patches = append(target.patches, conditions...)
			w.targets = append(w.targets, target)
		}
		todo = append(todo, w)
	}
	return todo
}

// holdPatch is the server-side apply that held or released an object.
func holdPatch(obj *unstructured.Unstructured) map[string]any {
	body := map[string]any{}
	if held := obj.GetAnnotations()[v1alpha1.HeldByAnnotation]; held != "" {
		body["annotations"] = map[string]any{v1alpha1.HeldByAnnotation: held}
		body["spec"] = map[string]any{"suspend": true}
	}
	return apiOf(obj, body)
}

func apiOf(obj *unstructured.Unstructured, body map[string]any) map[string]any {
	with := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}
	for key, value := range body {
		with[key] = value
	}
	return with
}

// statusPatch is the merge patch of the conditions of an object.
func statusPatch(obj *unstructured.Unstructured) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return map[string]any{"status": map[string]any{"conditions": conditions}}
}

// gatePatch is a merge patch of the conditions of a Gate. Except for the last one, each has another message, so that each patch changes
// something.
func gatePatch(gate *v1alpha1.Gate, toCome int) map[string]any {
	conditions := slices.Clone(gate.Status.Conditions)
	for i := range conditions {
		if toCome > 0 {
			conditions[i].Message = fmt.Sprintf("Bringing the targets to what the gate wants, %d patches to come", toCome)
		}
	}
	return map[string]any{"status": map[string]any{"conditions": conditions, "targets": gate.Status.Targets}}
}

func mustMarshal(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of what JSON has always marshal
	}
	return raw
}
