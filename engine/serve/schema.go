package serve

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/result"
)

// document begins the description of the server: the schemas of types that make their JSON
// themselves, and how callers show who they are.
func document() *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[result.Answer](), reflect.TypeFor[*string]()) // null: there is none
	schemas.RegisterTypeAlias(reflect.TypeFor[result.Fields](), reflect.TypeFor[map[string]any]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0", Info: &huma.Info{Title: "racflow", Version: engine.Version()},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token": {Type: "http", Scheme: "bearer", Description: "Where the server was started with tokens"},
		}},
		Security: []map[string][]string{{"token": {}}, {}},
	}
}
