package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
)

// Products manages products, for admins.
type Products struct{ *caller }

// Create creates a product. With a key, the call can be repeated.
func (c Products) Create(ctx context.Context, spec dibs.ProductSpec, key string) (api.ProductView, error) {
	return admin[api.ProductView](ctx, c.caller, http.MethodPost, "/v1/products", key, spec)
}

// Patch changes a product; nil fields stay.
func (c Products) Patch(ctx context.Context, id string, patch dibs.ProductPatch) (api.ProductView, error) {
	return admin[api.ProductView](ctx, c.caller, http.MethodPatch, "/v1/products/"+url.PathEscape(id), "", patch)
}

// Get returns a product.
func (c Products) Get(ctx context.Context, id string) (api.ProductView, error) {
	return admin[api.ProductView](ctx, c.caller, http.MethodGet, "/v1/products/"+url.PathEscape(id), "", nil)
}

// List lists products by id.
func (c Products) List(ctx context.Context, page dibs.Page) (api.ListView[api.ProductView], error) {
	return list[api.ProductView](ctx, c.caller, "/v1/products", pageQuery(page), c.opts.AdminKey)
}
