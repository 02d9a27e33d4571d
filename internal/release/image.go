package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser runs the program in a container: any number but that of root, and
// the one that other images from scratch use.
const imageUser = 65532

// platform is a processor with its binary for Linux.
type platform struct{ arch, binary string }

// image writes one image for all processors as an OCI archive, which podman,
// skopeo, containerd and Docker read. It is written here, with the types of the
// specification, because the tools that build images need privileges, a daemon
// or files of this machine, and none of that is needed to put one file into a
// layer.
func (r *release) image(platforms []platform) error {
	var blobs blobs
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, p := range platforms {
		manifest, err := r.manifest(&blobs, p)
		if err != nil {
			return err
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	all, err := blobs.json(ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{ocispec.AnnotationRefName: r.version}
	// index.json leads to the image, whose index leads to the processors.
	top, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{all},
	})
	if err != nil {
		return err
	}
	layout, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}
	files := append(blobs.files, file{name: "index.json", body: top, mode: 0o644}, file{name: "oci-layout", body: layout, mode: 0o644})
	return r.create("oci.tar", func(out io.Writer) error { return plainTar(out, files, r.at) })
}

// manifest adds the image of one processor: a layer, its configuration, and the
// manifest that names both.
func (r *release) manifest(to *blobs, p platform) (ocispec.Descriptor, error) {
	var plain, packed bytes.Buffer
	files := rootFS(p.binary)
	if err := plainTar(&plain, files, r.at); err != nil {
		return ocispec.Descriptor{}, err
	}
	if err := tarball(&packed, files, r.at); err != nil {
		return ocispec.Descriptor{}, err
	}
	layer := to.add(ocispec.MediaTypeImageLayerGzip, packed.Bytes())
	config, err := to.json(ocispec.MediaTypeImageConfig, r.config(p.arch, digest.FromBytes(plain.Bytes())))
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	manifest, err := to.json(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: config, Layers: []ocispec.Descriptor{layer},
	})
	manifest.Platform = &ocispec.Platform{OS: "linux", Architecture: p.arch}
	return manifest, err
}

// rootFS is all that a container has: the program, the authorities that its TLS
// connections trust, a folder for data, and one for SQLite's temporary files.
func rootFS(binary string) []file {
	return []file{
		{name: "data/", mode: 0o700, owner: imageUser},
		{name: "dibs", from: binary, mode: 0o755},
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", body: authorities(), mode: 0o644},
		{name: "tmp/", mode: 0o1777},
	}
}

// authorities are Mozilla's, as a pinned module has them: those of the machine
// that builds would differ from machine to machine. Authorities that are trusted
// for a part of their certificates only are left out, since a file of
// certificates cannot say which part.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// config says how a container runs.
func (r *release) config(arch string, layer digest.Digest) ocispec.Image {
	return ocispec.Image{
		Created:  &r.at,
		Platform: ocispec.Platform{OS: "linux", Architecture: arch},
		Config: ocispec.ImageConfig{
			User: fmt.Sprintf("%d:%d", imageUser, imageUser), Env: []string{"DIBS_DATA=/data"},
			Entrypoint: []string{"/dibs"}, Cmd: []string{"serve"}, WorkingDir: "/data",
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
			Volumes:      map[string]struct{}{"/data": {}},
			StopSignal:   "SIGTERM",
			Labels: map[string]string{
				ocispec.AnnotationTitle: "dibs", ocispec.AnnotationVersion: r.version,
				ocispec.AnnotationRevision: r.commit, ocispec.AnnotationLicenses: "Apache-2.0",
			},
		},
		RootFS:  ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer}},
		History: []ocispec.History{{Created: &r.at, CreatedBy: "dibs release"}},
	}
}

// blobs are the parts of an image, each named by its checksum.
type blobs struct{ files []file }

// add adds a part, once.
func (b *blobs) add(mediaType string, body []byte) ocispec.Descriptor {
	name := fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(body))
	if !slices.ContainsFunc(b.files, func(f file) bool { return f.name == name }) {
		b.files = append(b.files, file{name: name, body: body, mode: 0o644})
	}
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(body), Size: int64(len(body))}
}

// json adds a part that is JSON.
func (b *blobs) json(mediaType string, v any) (ocispec.Descriptor, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return b.add(mediaType, body), nil
}
