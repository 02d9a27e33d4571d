// Reads a document with AsyncAPI's own parser and ends with 1 if it finds an error.
import { readFileSync } from "node:fs";
import asyncapi from "@asyncapi/parser";

const { document, diagnostics } = await new asyncapi.Parser().parse(readFileSync(process.argv[2], "utf8"));
const errors = diagnostics.filter((d) => d.severity === 0);
for (const d of errors) console.error(d.path.join("."), d.message);
if (!document || errors.length > 0) process.exit(1);
console.log(`AsyncAPI: ${document.allMessages().length} messages, no error`);
