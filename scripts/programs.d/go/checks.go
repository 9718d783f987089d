// What the parts in Go share.
package main

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
)

func same(found, wanted any) error {
	if !reflect.DeepEqual(found, wanted) {
		return fmt.Errorf("%v instead of %v", found, wanted)
	}
	return nil
}

// The first error.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The version of a module that the part was built with.
func versionOf(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "?"
}

// Prints how a check went.
func check(name string, err error) {
	if err != nil {
		fmt.Printf("no %s: %.300s\n", name, strings.Join(strings.Fields(err.Error()), " "))
	} else {
		fmt.Println("ok", name)
	}
}
