/* The binding to PyTorch's operator observers, and nothing else.
 *
 * PyTorch calls registered observers at the start and at the end of every operator and autograd node (at::RecordFunction,
 * ATen/record_function.h). Its profilers are built on them, and unlike dispatch modes, hooks on modules or subclasses of
 * tensors they change nothing in the choice of kernels. The interface is C++; what is used of it is small and has been
 * the same since PyTorch 1.12: two functions that take or return plain values, and one method.
 *
 *   observe(library, enter, leave, compiler) -> capsule
 *       enter(name: str), leave(): called in the calling thread only
 *       compiler: torch._C._dynamo.eval_frame.set_eval_frame, or None. While a compiled function runs, PyTorch compiles every
 *       Python function that is called in this thread, and would start on enter and leave.
 *   release(capsule) -> error | None
 *       error: the first exception that enter or leave raised
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

/* at::RecordFunctionCallback, with room behind it: it holds one bool per kind of event, then options that stay off. The
 * first two kinds are operators and autograd nodes. Passed by value in memory, as the C++ ABI does with one of its size. */
struct callback {
    void (*start)(void **, const void *);
    void (*end)(const void *, void *);
    double probability;
    bool kinds[72];
};

typedef uint64_t (*add_function)(struct callback);
typedef void (*remove_function)(uint64_t);
typedef const char *(*name_function)(const void *);

struct observer {
    PyObject *enter, *leave, *compiler, *error;
    remove_function remove;
    uint64_t handle;
};

static const char CAPSULE[] = "flopwatch.observer";
static name_function name_of;
/* One at a time: PyTorch gives the callback no argument of our own. */
static struct observer *active;

static void keep_error(struct observer *self)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    /* Ctrl-C that happens to arrive in here must reach the program as soon as the operator is done. */
    if (PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt();
    else if (!self->error && value) {
        if (trace)
            PyException_SetTraceback(value, trace);
        self->error = Py_NewRef(value);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static void call(const char *name, bool entering)
{
    if (!active || !Py_IsInitialized())
        return;
    PyGILState_STATE gil = PyGILState_Ensure();
    struct observer *self = active;
    if (self) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace); /* operators also end while an exception is on its way */
        PyObject *resume = self->compiler == Py_None ? Py_NewRef(Py_None) : PyObject_CallOneArg(self->compiler, Py_None);
        PyObject *result = NULL;
        if (resume)
            result = entering ? PyObject_CallFunction(self->enter, "s", name) : PyObject_CallNoArgs(self->leave);
        if (!result)
            keep_error(self);
        Py_XDECREF(result);
        if (resume && resume != Py_None) {
            result = PyObject_CallOneArg(self->compiler, resume);
            if (!result)
                keep_error(self);
            Py_XDECREF(result);
        }
        Py_XDECREF(resume);
        PyErr_Restore(type, value, trace);
    }
    PyGILState_Release(gil);
}

/* C++: std::unique_ptr<ObserverContext> start(const RecordFunction&), the pointer returned through memory. */
static void on_start(void **context, const void *function)
{
    *context = NULL;
    call(name_of(function), true);
}

static void on_end(const void *function, void *context)
{
    (void)function;
    (void)context;
    call(NULL, false);
}

static void discard(struct observer *self)
{
    if (active == self) {
        active = NULL;
        self->remove(self->handle);
    }
    Py_CLEAR(self->enter);
    Py_CLEAR(self->leave);
    Py_CLEAR(self->compiler);
}

static void destroy(PyObject *capsule)
{
    struct observer *self = PyCapsule_GetPointer(capsule, CAPSULE);
    discard(self);
    Py_CLEAR(self->error);
    PyMem_Free(self);
}

static PyObject *observe(PyObject *module, PyObject *args)
{
    const char *library;
    PyObject *enter, *leave, *compiler;
    (void)module;
    if (!PyArg_ParseTuple(args, "sOOO", &library, &enter, &leave, &compiler))
        return NULL;
#if !defined(__x86_64__)
    PyErr_SetString(PyExc_NotImplementedError, "operator observers are implemented for x86-64 only");
    return NULL;
#endif
    if (active) {
        PyErr_SetString(PyExc_RuntimeError, "another observer is active");
        return NULL;
    }
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) {
        PyErr_Format(PyExc_NotImplementedError, "%s is not loaded", library);
        return NULL;
    }
    add_function add = (add_function)dlsym(handle, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE");
    remove_function remove = (remove_function)dlsym(handle, "_ZN2at14removeCallbackEm");
    name_function name = (name_function)dlsym(handle, "_ZNK2at14RecordFunction4nameEv");
    dlclose(handle);
    if (!add || !remove || !name) {
        PyErr_SetString(PyExc_NotImplementedError, "this build of PyTorch does not export its operator observers");
        return NULL;
    }
    struct observer *self = PyMem_Calloc(1, sizeof *self);
    if (!self)
        return PyErr_NoMemory();
    self->enter = Py_NewRef(enter);
    self->leave = Py_NewRef(leave);
    self->compiler = Py_NewRef(compiler);
    self->remove = remove;
    PyObject *capsule = PyCapsule_New(self, CAPSULE, destroy);
    if (!capsule) {
        Py_DECREF(enter);
        Py_DECREF(leave);
        Py_DECREF(compiler);
        PyMem_Free(self);
        return NULL;
    }
    struct callback callback = {on_start, on_end, 1.0, {true, true}};
    name_of = name;
    active = self;
    self->handle = add(callback);
    return capsule;
}

static PyObject *release(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct observer *self = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!self)
        return NULL;
    discard(self);
    return Py_NewRef(self->error ? self->error : Py_None);
}

static PyMethodDef methods[] = {
    {"observe", observe, METH_VARARGS, "observe(library, enter, leave, compiler): tell of each operator's start and end."},
    {"release", release, METH_O, "release(observer): stop; return the first exception of enter or leave, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_observer", "PyTorch's operator observers.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__observer(void)
{
    return PyModule_Create(&definition);
}
