/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c: the template of a plug-in for a backend in Python. byoc/_backend.py
 * copies this library, and writes the location of the backend's definition to
 * `location`. The plug-in's query finds Python in the process or starts it, and
 * calls byoc._backend.find(), which returns the struct byoc_backend that
 * backend.c makes.
 *
 * The library does not link Python: the program python3 contains Python, and
 * the command `byoc` has none until the plug-in opens libpython.
 */
#include <Python.h>

#include <byoc/graph.h>

#include <dlfcn.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* The text that _backend.py replaces: LOCATION_HEAD, by which _backend.py finds
 * the text in the file, and then N_LINES lines, separated by newlines. It is
 * volatile so that the compiler does not assume that its content is the one
 * here. */
#define LOCATION_HEAD "byoc-python-plugin:"
static const volatile char location[4096] = LOCATION_HEAD;
enum location_line { NAME, SOURCE, LIBRARY, PACKAGE, N_LINES };

static char lines[N_LINES][sizeof location];

static void read_location(void)
{
    size_t at = sizeof LOCATION_HEAD - 1;
    for (int line = 0; line < N_LINES; line++) {
        size_t n = 0;
        while (at < sizeof location - 1 && location[at] && location[at] != '\n')
            lines[line][n++] = location[at++];
        lines[line][n] = '\0';
        at += at < sizeof location - 1;
    }
}

/* --- Python's functions, which dlsym() finds -------------------------------
 */

#define FUNCTIONS(each)                                                        \
    each(Py_IsInitialized) each(Py_InitializeEx) each(PyEval_SaveThread)       \
        each(PyGILState_Ensure) each(PyGILState_Release) each(PySys_GetObject) \
            each(PyUnicode_FromString) each(PySequence_Contains)               \
                each(PyList_Append) each(PyImport_ImportModule)                \
                    each(PyObject_CallMethod) each(PyCapsule_GetPointer)       \
                        each(PyErr_Fetch) each(PyErr_Clear) each(PyObject_Str) \
                            each(PyUnicode_AsUTF8AndSize) each(Py_DecRef)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
} py;

/* Set the members of `py`. Returns the name of a missing function, or NULL. */
static const char *find_functions(void *library)
{
#define FIND(name)                                                             \
    {                                                                          \
        void *at = dlsym(library, #name);                                      \
        if (!at)                                                               \
            return #name;                                                      \
        memcpy(&py.name, &at, sizeof at);                                      \
    }
    FUNCTIONS(FIND)
    return NULL;
}

/* Start Python, which sets LC_CTYPE, and restore the locale of the host
 * program. */
static void start_python(void)
{
    const char *locale = setlocale(LC_ALL, NULL);
    char *old_locale = locale ? strdup(locale) : NULL;
    py.Py_InitializeEx(0);
    py.PyEval_SaveThread();
    if (old_locale)
        setlocale(LC_ALL, old_locale);
    free(old_locale);
}

/* Find Python in this process, otherwise open libpython, and start Python if it
 * is not running. Returns 0, or -1 with the reason in `why`. */
static int open_python(char *why, uint32_t why_bytes)
{
    const char *missing;
    void *library = RTLD_DEFAULT;
    if (!dlsym(RTLD_DEFAULT, "Py_IsInitialized")) {
        /* global, since modules of the standard library use symbols of
         * libpython without linking it */
        library = dlopen(lines[LIBRARY], RTLD_NOW | RTLD_GLOBAL);
        if (!library) {
            snprintf(why, why_bytes,
                     "this backend needs Python, which this process has not "
                     "loaded: %s; install libpython3",
                     dlerror());
            return -1;
        }
    }
    missing = find_functions(library);
    if (missing) {
        snprintf(why, why_bytes,
                 "found a Python without %s, expected Python 3.11 or newer",
                 missing);
        return -1;
    }
    if (!py.Py_IsInitialized())
        start_python();
    return 0;
}

/* --- the query ------------------------------------------------------------ */

/* Write the text of the current exception to `why`, and clear the exception. */
static void copy_exception(char *why, uint32_t why_bytes)
{
    PyObject *type, *value, *trace, *text;
    const char *message;
    py.PyErr_Fetch(&type, &value, &trace);
    text = value ? py.PyObject_Str(value) : NULL;
    message = text ? py.PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(why, why_bytes, "%s",
             message && *message ? message
                                 : "a Python exception without a text");
    py.PyErr_Clear();
    py.Py_DecRef(text);
    py.Py_DecRef(trace);
    py.Py_DecRef(value);
    py.Py_DecRef(type);
}

/* Add the folder that contains the package byoc to sys.path, unless it is
 * there. It is missing if this plug-in has started Python. */
static void add_package(void)
{
    PyObject *path = py.PySys_GetObject("path"); /* borrowed */
    PyObject *folder = py.PyUnicode_FromString(lines[PACKAGE]);
    if (path && folder && py.PySequence_Contains(path, folder) == 0)
        py.PyList_Append(path, folder);
    py.PyErr_Clear();
    py.Py_DecRef(folder);
}

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    static const struct byoc_backend *backend;
    (void)host;
    if (backend)
        return backend;
    read_location();
    if (!lines[NAME][0]) {
        snprintf(why, why_bytes,
                 "found the template of backends in Python, expected a copy "
                 "from byoc.PythonBackend.write()");
        return NULL;
    }
    if (open_python(why, why_bytes))
        return NULL;
    PyGILState_STATE gil = py.PyGILState_Ensure();
    add_package();
    PyObject *module = py.PyImport_ImportModule("byoc._backend");
    PyObject *capsule = module
                            ? py.PyObject_CallMethod(module, "find", "ss",
                                                     lines[NAME], lines[SOURCE])
                            : NULL;
    if (capsule)
        backend = py.PyCapsule_GetPointer(capsule, "byoc_backend");
    if (!backend)
        copy_exception(why, why_bytes);
    py.Py_DecRef(capsule); /* the definition keeps the backend alive */
    py.Py_DecRef(module);
    py.PyGILState_Release(gil);
    return backend;
}
BYOC_BACKEND_DEFINE(query)
