#!/bin/sh
# Renders each folder and checks its objects against the schemas of Kubernetes: no unknown field, no unknown kind.
# Needs kustomize, kubeconform, python3, and go, which fetches the schemas: they are part of a module.
set -eu

version=1.30
module=sigs.k8s.io/kubectl-validate@v0.0.4

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source=$(cd / && go mod download -json "$module" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')

# From OpenAPI to JSON Schema: a file for each kind, and no other properties than those of the schema.
python3 - "$source/pkg/openapiclient/builtins/$version" "$folder" <<'PYTHON'
import glob, json, os, sys

source, folder = sys.argv[1:]
for number, file in enumerate(glob.glob(source + "/api*/**/*.json", recursive=True)):
    components = json.load(open(file))["components"]
    for schema in components["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    json.dump({"components": components}, open(f"{folder}/{number}.json", "w"))
    for name, schema in components["schemas"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            words = [kind["kind"], kind["group"].split(".")[0], kind["version"]]
            target = os.path.join(folder, "-".join(filter(None, words)).lower() + ".json")
            if not os.path.exists(target):
                json.dump({"$ref": f"{number}.json#/components/schemas/{name}"}, open(target, "w"))
PYTHON

conforms() {
    kubeconform -strict -summary -schema-location "$folder/{{ .ResourceKind }}{{ .KindSuffix }}.json"
}

# The check itself can fail.
service='{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "tenfold"}, "spec": {"port": 80}}'
if echo "$service" | conforms > "$folder/refused" || ! grep -q "'port' not allowed" "$folder/refused"; then
    echo "kubeconform does not refuse an unknown field:"
    cat "$folder/refused"
    exit 1
fi

cd "$(dirname "$0")"
for name in server members agents; do
    kustomize build "$name" > "$folder/$name.yaml"
    echo "packaging/kubernetes/$name"
    conforms < "$folder/$name.yaml"
done
