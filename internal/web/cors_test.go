package web

import "testing"

func TestCheckOrigin(t *testing.T) {
	for origin, good := range map[string]bool{
		"https://shop.example": true, "http://localhost:3000": true, "*": true,
		"shop.example": false, "https://shop.example/": false, "https://shop.example/x": false, "https://shop.example?x": false,
		"https://*.example": false, "HTTPS://shop.example": false, "https://u@shop.example": false, "null": false, "": false, "ftp://shop.example": false,
	} {
		if problem := CheckOrigin(origin); (problem == "") != good {
			t.Errorf("%q: %q", origin, problem)
		}
	}
}
