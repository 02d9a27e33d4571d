package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/httpapi"
)

func TestConfigListsEveryFault(t *testing.T) {
	_, err := httpapi.New(httpapi.Config{MaxBody: 1, MaxAdminBody: -1})
	for _, field := range []string{"Service", "JWTSecret", "MaxBody", "MaxAdminBody"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	for _, bad := range []func() (string, error){
		func() (string, error) { return httpapi.IssueToken(nil, "42", time.Hour) },
		func() (string, error) { return httpapi.IssueToken([]byte("x"), "4 2", time.Hour) },
	} {
		if token, err := bad(); err == nil {
			t.Error(fmt.Sprint("a token was issued: ", token))
		}
	}
}
