// A module of its own: of Cluster API nothing is built, one CRD is copied, and it would raise grpc and etcd under the control
// plane. No package imports it, so go mod tidy would remove the line; go mod download writes go.sum.
module github.com/fluxcd/gating-controller/tests/tools/clusterapi

go 1.26.0

require sigs.k8s.io/cluster-api v1.14.2
