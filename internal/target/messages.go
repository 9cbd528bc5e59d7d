package target

// Messages shown to users in conditions, events, the history, errors and logs.
const (
	msgKindTwice               = "%q: kind %s of %s is already configured with field %s; only one field per kind is allowed"
	msgKindName                = "%q: %s is already configured; kinds must have different names"
	msgKindVersion             = "must not have a version: write %s/%s"
	msgKindForm                = "must be group/Kind or group/Kind=spec.field, such as batch/CronJob"
	msgKindCase                = "the kind must be written as in manifests, such as CronJob, not %q"
	msgKindCore                = "kinds of the core group, such as Pod, cannot be held"
	msgKindGate                = "gates cannot hold the kinds of their own API group"
	msgKindField               = "the field must be in spec, such as spec.paused, not %q"
	msgKindBuiltIn             = "kind %s of %s is built in"
	msgKindBuiltInName         = "kind %s of %s is built in, and kinds must have different names"
	msgNoSchema                = "the API server publishes no schema of %s"
	msgNameField               = "name the field that suspends it, as in --suspend-kinds=%s/%s=spec.paused"
	msgNotNamespaced           = " is not namespaced: gates hold only namespaced objects"
	msgFieldUnknown            = "the schema of %s does not declare %s: gates need a declared boolean field"
	msgFieldMissing            = "%s has no boolean field %s: %s"
	msgFieldType               = "%s of %s has type %s, but must be a boolean field: %s"
	msgFieldDefault            = "%s of %s is true by default: released objects would stay suspended"
	msgFieldRequired           = "%s of %s is required and has no default: gates release by removing the field"
	msgAPIVersion              = "apiVersion %q must have the form group/version"
	msgKindUnsupported         = "kind %s of %s is not supported%s"
	msgKindUnsupportedAnywhere = "kind %s is not supported%s"
	msgKindAmbiguous           = "kind %s is in more than one API group, name its apiVersion"
	msgKindHint                = ": if a boolean field suspends its objects, start the controller with --suspend-kinds=%s/%s"
)
