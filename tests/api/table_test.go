package api_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tableOf returns the cells that kubectl get shows of an object.
func tableOf(t *testing.T, resource, name string) ([][]any, error) {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.GroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	raw, err := api.Get().Namespace(metav1.NamespaceDefault).Resource(resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(raw, table); err != nil {
		return nil, err
	}
	var rows [][]any
	for _, row := range table.Rows {
		cells := make([]any, len(row.Cells))
		for i, cell := range row.Cells {
			if n, ok := cell.(float64); ok {
				cell = int64(n)
			}
			cells[i] = cell
		}
		rows = append(rows, cells)
	}
	return rows, nil
}
