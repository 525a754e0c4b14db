// Package kubernetes checks the manifests of examples/cluster/kubernetes against Kubernetes' own types, which are too
// large to be part of racflow, and their commands against bin/racflow.
package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const folder = "../../examples/cluster/kubernetes"

// read reads the objects of a manifest. A field that an object's type does not have is an error.
func read(t *testing.T, name string) (all []any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	for from := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := from.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		var is meta.TypeMeta
		if err = errors.Join(err, yaml.Unmarshal(document, &is)); err != nil {
			t.Fatal(err)
		}
		object, known := map[string]any{
			"apps/v1 Deployment": new(apps.Deployment), "batch/v1 Job": new(batch.Job), "v1 Service": new(core.Service),
			"v1 PersistentVolumeClaim": new(core.PersistentVolumeClaim),
		}[is.APIVersion+" "+is.Kind]
		if !known {
			t.Fatalf("%s has an object of the unknown type %s %s", name, is.APIVersion, is.Kind)
		}
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all = append(all, object)
	}
}

func TestManifests(t *testing.T) {
	pods := map[string]core.PodTemplateSpec{} // by the name of what makes them
	var objects []any
	for _, name := range []string{"serve.yaml", "run.yaml"} {
		objects = append(objects, read(t, name)...)
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *apps.Deployment:
			pods[o.Name] = o.Spec.Template
			if o.Spec.Selector.MatchLabels["app"] != o.Spec.Template.Labels["app"] {
				t.Errorf("deployment %s does not select its own pods", o.Name)
			}
		case *batch.Job:
			pods[o.Name] = o.Spec.Template
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *core.Service:
			pod := pods[o.Name]
			if pod.Labels["app"] != o.Spec.Selector["app"] || len(pod.Spec.Containers) == 0 || pod.Spec.Containers[0].Ports[0].Name != o.Spec.Ports[0].TargetPort.StrVal {
				t.Errorf("service %s leads nowhere", o.Name)
			}
		}
	}
	for name, pod := range pods {
		t.Run(name, func(t *testing.T) { check(t, pod.Spec) })
	}
}

// check checks what a pod may do, and that its containers find what they name.
func check(t *testing.T, pod core.PodSpec) {
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		t.Error("it may run as root, or without a filter of system calls")
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("it has a token for the cluster")
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	if c := pod.Containers[0]; c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Error("it says nothing about what it takes")
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("container %s can write to its image, or become root", c.Name)
		}
		var mounted []string
		for _, m := range c.VolumeMounts {
			mounted = append(mounted, m.MountPath)
			if !volumes[m.Name] {
				t.Errorf("container %s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
		for _, e := range c.Env {
			if strings.HasPrefix(e.Value, "/") && !under(e.Value, mounted) {
				t.Errorf("%s is in no volume: %s", e.Name, e.Value)
			}
		}
		// An unknown flag is refused before help is shown.
		args := strings.Split(strings.ReplaceAll(strings.Join(c.Args, "\n"), "$(PART)", "0"), "\n")
		if said, err := exec.Command("../../bin/racflow", append(args, "--help")...).CombinedOutput(); err != nil {
			t.Errorf("racflow %s: %v\n%s", strings.Join(c.Args, " "), err, said)
		}
	}
}

func under(path string, folders []string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}
