package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Controller describes a controller, based on its Deployment.
type Controller struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Image     string `json:"image"`
	// Version is the tag of the image, empty if there is none.
	Version  string `json:"version,omitempty"`
	Ready    int64  `json:"ready"`
	Replicas int64  `json:"replicas"`
	// TimeZoneData is the version of the leader's time zone data, empty if unknown.
	TimeZoneData string `json:"timeZoneData,omitempty"`
	// Kinds are the values of the controller's flag --suspend-kinds.
	Kinds []string `json:"suspendKinds,omitempty"`
	// crossNamespace is true if Gates of the controller may hold objects in other namespaces.
	crossNamespace bool
	// account is the user name of the controller's service account.
	account string
	elects  bool
	labels  map[string]string
}

// ControllerLabel is the label of all objects of the controller.
const ControllerLabel = "app.kubernetes.io/name=gating-controller"

// ControllerOf returns the controller that a Deployment runs.
func ControllerOf(d *unstructured.Unstructured) Controller {
	c := Controller{Namespace: d.GetNamespace(), Name: d.GetName(), Replicas: 1, labels: d.GetLabels()}
	if n, ok, _ := unstructured.NestedInt64(d.Object, "spec", "replicas"); ok {
		c.Replicas = n
	}
	c.Ready, _, _ = unstructured.NestedInt64(d.Object, "status", "readyReplicas")
	account, _, _ := unstructured.NestedString(d.Object, "spec", "template", "spec", "serviceAccountName")
	if account == "" {
		account = "default"
	}
	c.account = "system:serviceaccount:" + c.Namespace + ":" + account
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	for _, item := range containers {
		container, _ := item.(map[string]any)
		image, _, _ := unstructured.NestedString(container, "image")
		args, _, _ := unstructured.NestedStringSlice(container, "args")
		if !strings.Contains(image, "gating-controller") && len(containers) > 1 {
			continue
		}
		c.Image, c.Version = image, tagOf(image)
		c.Kinds = kindsIn(args)
		for _, arg := range args {
			if value, ok := strings.CutPrefix(arg, "--no-cross-namespace-refs="); ok {
				forbidden, err := strconv.ParseBool(value)
				c.crossNamespace = err == nil && !forbidden
			}
		}
		c.elects = slices.ContainsFunc(args, func(arg string) bool {
			return arg == "--enable-leader-election" || arg == "--enable-leader-election=true"
		})
	}
	return c
}

// kindsIn returns the values of --suspend-kinds in arguments.
func kindsIn(args []string) (kinds []string) {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--suspend-kinds=")
		if arg == "--suspend-kinds" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok {
			kinds = append(kinds, strings.Split(value, ",")...)
		}
	}
	return kinds
}

// Reach returns a function that reports whether objects in a namespace may refer to another namespace, nil if no controller is known.
// References across namespaces are permitted if at least one controller permits them.
func Reach(controllers []Controller) func(from, to string) bool {
	if len(controllers) == 0 {
		return nil
	}
	crosses := slices.ContainsFunc(controllers, func(c Controller) bool { return c.crossNamespace })
	return func(from, to string) bool { return crosses || from == to }
}

// String identifies the Deployment.
func (c Controller) String() string { return "Deployment " + c.Namespace + "/" + c.Name }

// tagOf returns the tag of an image, empty if there is none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[i+1:]
	}
	return ""
}

var isRelease = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// Controllers finds controllers that are not running, or that are from a release other than this plugin's. lives is true if a controller
// without a Deployment is running.
func Controllers(all []Controller, version string, lives bool) (findings []Finding) {
	if len(all) == 0 && lives {
		return []Finding{{Warning, "Deployment gating-controller", "no Deployment of the controller was found, but Gates are reconciled: it runs elsewhere", "to check its Deployment, add the label " + ControllerLabel}}
	}
	if len(all) == 0 {
		return []Finding{{Error, "Deployment gating-controller", "there is no Deployment with the label " + ControllerLabel + " in any namespace: Gates are not opened or closed", installIt}}
	}
	for _, c := range all {
		logs := fmt.Sprintf("kubectl -n %s describe deployment %s; kubectl -n %s logs deployment/%s", c.Namespace, c.Name, c.Namespace, c.Name)
		switch {
		case c.Replicas == 0:
			findings = append(findings, Finding{Error, c.String(), "it is scaled to 0: held targets stay held, and no others are held", fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", c.Namespace, c.Name)})
		case c.Ready == 0:
			findings = append(findings, Finding{Error, c.String(), fmt.Sprintf("no replica of %d is ready: Gates are not opened or closed", c.Replicas), logs})
		case c.Ready < c.Replicas:
			findings = append(findings, Finding{Warning, c.String(), fmt.Sprintf("%d of %d replicas are ready", c.Ready, c.Replicas), logs})
		}
		if isRelease.MatchString(version) && isRelease.MatchString(c.Version) && version != c.Version {
			findings = append(findings, Finding{Warning, c.String(), fmt.Sprintf("it is %s, and this plugin is %s", c.Version, version), "use the plugin of the same release as the controller"})
		}
	}
	return findings
}
