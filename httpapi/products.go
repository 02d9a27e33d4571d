package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/dibs-dev/dibs"
)

// Products is what the handlers of products call. ErrNotFound for an id without one;
// *dibs.Error of InvalidRequest with every fault.
type Products interface {
	// CreateProduct stores a new product; *dibs.Error of AlreadyExists.
	CreateProduct(ctx context.Context, spec dibs.ProductSpec) (*dibs.Product, error)
	// PatchProduct changes a product. Published campaigns keep the price that they were
	// published with.
	PatchProduct(ctx context.Context, id string, patch dibs.ProductPatch) (*dibs.Product, error)
	Product(ctx context.Context, id string) (*dibs.Product, error)
	Products(ctx context.Context, page dibs.Page) (dibs.List[dibs.Product], error)
}

const productExample = `{"id":"phone-x","name":"Phone X","price":{"amount":99900,"currency":"CNY"},"description":"The phone of the year","stock":500}`

func productView(p *dibs.Product) dibs.ProductView { return p.View(true) }

// productHandlers show and change products.
type productHandlers struct {
	*api
	products Products
}

func (h *productHandlers) register() {
	get := func(ctx context.Context, id string) (dibs.ProductView, error) {
		return viewOf(productView)(h.products.Product(ctx, id))
	}
	subject(h.api, "/v1/products/{id}", get)
	checkedChange(h.api, operation{
		method: http.MethodPost, path: "/v1/products", id: "create-product", tag: tagProducts, access: adminOnly, role: dibs.RoleEditor, status: http.StatusCreated,
		summary: "Create a product", example: productExample,
	}, func(spec *dibs.ProductSpec) error { _, err := spec.Product(time.Now()); return err },
		func(ctx context.Context, c *call, _ *struct{}, spec *dibs.ProductSpec) (dibs.ProductView, error) {
			v, err := viewOf(productView)(h.products.CreateProduct(ctx, *spec))
			if err == nil {
				c.Header().Set("Location", "/v1/products/"+v.ID)
			}
			return v, err
		})
	register(h.api, operation{
		method: http.MethodGet, path: "/v1/products", id: "list-products", tag: tagProducts, access: adminOnly,
		summary: "List products by id", strictQuery: true,
	}, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (dibs.ListView[dibs.ProductView], error) {
		return listOf(productView)(h.products.Products(ctx, in.page()))
	})
	register(h.api, operation{
		method: http.MethodGet, path: "/v1/products/{id}", id: "get-product", tag: tagProducts, access: adminOnly,
		summary: "Show a product",
	}, byID(get))
	change(h.api, operation{
		method: http.MethodPatch, path: "/v1/products/{id}", id: "patch-product", tag: tagProducts, access: adminOnly, role: dibs.RoleEditor,
		summary: "Change a product", description: "Fields that are absent or null stay.", example: `{"name":"Phone X, 256 GB"}`,
	}, func(ctx context.Context, _ *call, in *PathID, patch *dibs.ProductPatch) (dibs.ProductView, error) {
		return viewOf(productView)(h.products.PatchProduct(ctx, in.ID, *patch))
	})
}
