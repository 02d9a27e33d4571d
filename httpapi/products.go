package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

const idDoc = "1-64 characters of A-Z a-z 0-9 . _ -"

// PathID is the id in a path. huma finds the parameters of exported embedded
// types only.
type PathID struct {
	ID string `path:"id" doc:"1-64 characters of A-Z a-z 0-9 . _ -"`
}

// PageQuery asks for a part of a list; exported as PathID is.
type PageQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"100" doc:"how many at most, default 20"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the page before"`
}

func (p PageQuery) page() dibs.Page { return dibs.Page{Limit: p.Limit, Cursor: p.Cursor} }

// listOf makes a page of views.
func listOf[T, V any](l dibs.List[T], view func(*T) V) dibs.ListView[V] {
	v := dibs.ListView[V]{Items: make([]V, len(l.Items)), NextCursor: l.NextCursor}
	for i := range l.Items {
		v.Items[i] = view(&l.Items[i])
	}
	return v
}

func adminProduct(p *dibs.Product) dibs.ProductView { return p.View(true) }

const productExample = `{"id":"phone-x","name":"Phone X","price":{"amount":99900,"currency":"CNY"},"description":"The one everybody wants","stock":500}`

func (a *api) registerProducts() {
	change(a, operation{
		method: http.MethodPost, path: "/v1/products", id: "create-product", tag: tagProducts, access: adminOnly, role: dibs.RoleEditor, status: http.StatusCreated,
		summary: "Create a product", example: productExample, maxBody: a.cfg.MaxBody,
	}, func(ctx context.Context, c *call, _ *struct{}, spec *dibs.ProductSpec) (dibs.ProductView, error) {
		p, err := a.svc.CreateProduct(ctx, *spec)
		if err != nil {
			return dibs.ProductView{}, err
		}
		c.Header().Set("Location", "/v1/products/"+p.ID)
		return adminProduct(p), nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/products", id: "list-products", tag: tagProducts, access: adminOnly,
		summary: "List products by id", strictQuery: true,
	}, func(ctx context.Context, _ *call, in *struct{ PageQuery }) (dibs.ListView[dibs.ProductView], error) {
		l, err := a.svc.Products(ctx, in.page())
		return listOf(l, adminProduct), err
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/products/{id}", id: "get-product", tag: tagProducts, access: adminOnly,
		summary: "Show a product",
	}, func(ctx context.Context, _ *call, in *PathID) (dibs.ProductView, error) {
		return productView(a.svc.Product(ctx, in.ID))
	})
	change(a, operation{
		method: http.MethodPatch, path: "/v1/products/{id}", id: "patch-product", tag: tagProducts, access: adminOnly, role: dibs.RoleEditor,
		summary: "Change a product", description: "Fields that are absent or null stay.", example: `{"name":"Phone X, 256 GB"}`, maxBody: a.cfg.MaxBody,
	}, func(ctx context.Context, _ *call, in *PathID, patch *dibs.ProductPatch) (dibs.ProductView, error) {
		return productView(a.svc.PatchProduct(ctx, in.ID, *patch))
	})
}

// orderBody asks for units of a product.
type orderBody struct {
	Quantity *int64 `json:"quantity,omitempty" minimum:"1" maximum:"10000" doc:"how many units, default 1"`
}

// registerRegular adds orders of a product's own stock.
func (a *api) registerRegular() {
	change(a, operation{
		method: http.MethodPost, path: "/v1/products/{id}/orders", id: "order-product", tag: tagUser, access: userOnly, status: http.StatusCreated,
		summary: "Order a product", example: `{"quantity":1}`, maxBody: a.cfg.MaxBody, knowsRepeats: true,
		description: "A regular order of the product's own stock, beside the claims of campaigns: `order_type` is 1, `campaign_id` is empty. " +
			"From then on it is a claim as others are.",
	}, func(ctx context.Context, c *call, in *PathID, body *orderBody) (dibs.ClaimView, error) {
		key, err := idempotencyKey(c.request.Header)
		if err != nil {
			return dibs.ClaimView{}, err
		}
		req := dibs.OrderRequest{ProductID: in.ID, UserID: c.who.user, Key: key}
		if body.Quantity != nil {
			req.Quantity = *body.Quantity
		}
		res, err := a.svc.Order(ctx, req)
		if err != nil {
			return dibs.ClaimView{}, err
		}
		if res.Outcome != dibs.Granted {
			return dibs.ClaimView{}, refusalOf(&res)
		}
		if res.Replayed {
			c.code = http.StatusOK
			c.Header()[headerReplayed] = isTrue
		} else {
			c.Header().Set("Location", "/v1/claims/"+res.Claim.ID)
		}
		return res.Claim.View(), nil
	})
}

func productView(p *dibs.Product, err error) (dibs.ProductView, error) {
	if err != nil {
		return dibs.ProductView{}, err
	}
	return adminProduct(p), nil
}
