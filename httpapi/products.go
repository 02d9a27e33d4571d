package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// Products is what the handlers of products call. ErrNotFound for an id without one;
// *dibs.Error of InvalidRequest with every fault.
type Products interface {
	// Create stores a new product; *dibs.Error of AlreadyExists.
	Create(ctx context.Context, spec dibs.ProductSpec) (*dibs.Product, error)
	// Patch changes a product. Published campaigns keep the price that they were
	// published with.
	Patch(ctx context.Context, id string, patch dibs.ProductPatch) (*dibs.Product, error)
	Get(ctx context.Context, id string) (*dibs.Product, error)
	List(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error)
}

const productExample = `{"id":"phone-x","name":"Phone X","price":{"amount":99900,"currency":"CNY"},"description":"The phone of the year","stock":500}`

func productView(p *dibs.Product) api.ProductView { return api.ProductViewOf(p, true) }

// registerProducts adds the routes that show and change products.
func registerProducts(a *routes, products Products) {
	get := func(ctx context.Context, id string) (api.ProductView, error) {
		return viewOf(productView)(products.Get(ctx, id))
	}
	subject(a, "/v1/products/{id}", get)
	checkedChange(a, operation{
		method: http.MethodPost, path: "/v1/products", id: "create-product", tag: tagProducts, access: adminOnly, role: access.RoleEditor, status: http.StatusCreated,
		summary: "Create a product", example: productExample,
	}, func(spec *dibs.ProductSpec) error { _, err := spec.Product(time.Now()); return err },
		func(ctx context.Context, c *call, _ *struct{}, spec *dibs.ProductSpec) (api.ProductView, error) {
			v, err := viewOf(productView)(products.Create(ctx, *spec))
			return v, c.located("/v1/products/", v.ID, err)
		})
	register(a, operation{
		method: http.MethodGet, path: "/v1/products", id: "list-products", tag: tagProducts, access: adminOnly,
		summary: "List products by id", strictQuery: true,
	}, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (api.ListView[api.ProductView], error) {
		return listOf(productView)(products.List(ctx, in.page()))
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/products/{id}", id: "get-product", tag: tagProducts, access: adminOnly,
		summary: "Show a product",
	}, byID(get))
	change(a, operation{
		method: http.MethodPatch, path: "/v1/products/{id}", id: "patch-product", tag: tagProducts, access: adminOnly, role: access.RoleEditor,
		summary: "Change a product", description: "Fields that are absent stay; null takes an optional field away. A product that is `off_sale` takes no regular order, and no campaign of it is published.", example: `{"name":"Phone X, 256 GB"}`,
	}, func(ctx context.Context, _ *call, in *PathID, patch *dibs.ProductPatch) (api.ProductView, error) {
		return viewOf(productView)(products.Patch(ctx, in.ID, *patch))
	})
}
