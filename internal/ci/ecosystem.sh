#!/usr/bin/env bash
# Shows that the tools of others take what dibs describes: redocly lints the
# OpenAPI document, openapi-typescript makes types of it, which are compiled alone and with
# the client of examples/node, AsyncAPI's parser reads docs/asyncapi.json, and k6 runs the
# plans of examples/load small.
#
# It needs npm and a network, and is no part of make test; TestDocumentForTools,
# TestGeneratedClient and TestAsyncAPI hold the same rules there as far as they can be held
# without npm. What Debian and Go have is run by make test: promtool, JMeter, oapi-codegen.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

top=$(mktemp -d)
node=
trap '[ -z "$node" ] || kill "$node"; rm -rf "$top"' EXIT
go build -o "$top/dibs" ./cmd/dibs
DIBS_ADMIN_KEY=a-key-for-this-test "$top/dibs" dev --listen 127.0.0.1:0 >"$top/dev.log" 2>&1 &
node=$!
until grep -q Ctrl-C "$top/dev.log"; do sleep 0.2; done
url=$(grep -oPm1 'API +\Khttp://\S+' "$top/dev.log")
curl -sSf "$url/openapi.json" -o "$top/openapi.json"

for plan in rush rush.ws; do
	(cd examples/load && URL=$url ADMIN_KEY=a-key-for-this-test MANY=400 ONE=40 STOCK=20 SOCKETS=50 VUS=10 RAMP=1 \
		go run go.k6.io/k6@v1.8.1 run --quiet "$plan.k6.js")
done

cp docs/asyncapi.json internal/ci/ecosystem.mjs examples/node/dibs.mjs "$top"

cd "$top"
npm install --silent --no-audit --no-fund @redocly/cli@2.77.0 openapi-typescript@7.13.0 typescript@5.9.3 @types/node@20.19.43 @asyncapi/parser@3.6.3
npx redocly lint openapi.json
npx openapi-typescript openapi.json -o dibs.d.ts
npx tsc --noEmit --strict dibs.d.ts
npx tsc --noEmit --strict --allowJs --checkJs --module nodenext --target es2022 --types node dibs.mjs
node ecosystem.mjs asyncapi.json

echo "ecosystem: every tool took what dibs describes"
