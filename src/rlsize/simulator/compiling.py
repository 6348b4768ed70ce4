"""The one place that knows numba: it compiles functions over flat arrays, which are left as they are without it."""

from __future__ import annotations

from functools import cache
from operator import getitem
from typing import TYPE_CHECKING, Any, TypeVar, cast

try:
    import numba
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.itanium_mangler import mangle
    from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonTypeInference
    from numba.core.types import Array, Function, Integer, Type, int64
    from numba.core.untyped_passes import InlineClosureLikes
    from numba.extending import lower_builtin, models, register_model, type_callable
except ImportError:
    numba = None

if TYPE_CHECKING:
    from collections.abc import Callable

    from llvmlite.ir import IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.compiler import StateDict
    from numba.core.typing.templates import Signature

_Function = TypeVar("_Function", bound="Callable[..., object]")
_Table = TypeVar("_Table")
# nothing is divided by zero, no array is made, and there is nothing that numba would write more simply
_HOW: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_rewrites": True}
_PLACES = "UserProvidedCacheLocator,UserWideCacheLocator,InTreeCacheLocator"  # where what is compiled is kept


def compiled(function: _Function) -> _Function:
    """A function that is compiled with whoever calls it, and called by nobody else."""
    if numba is None:
        return function
    found: Any = _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_InnerCompiler)
    plain = found.get_call_template
    found.get_call_template = lambda args, names: plain(tuple(map(_widened, args)), names)
    return cast("_Function", found)


def rows(table: _Table) -> _Table:
    """A table of records as functions that are compiled take it: its rows are not counted from its end."""
    return table


if numba is not None:
    # Numba makes machine code of every function with all that it calls; of inner ones nobody needs it, and it takes
    # half of the time. So those stay as they are, and the entrance links all of them and makes machine code once. It
    # also goes through all that + or < may mean wherever they stand; they are looked up once for the same types. An
    # inner function is compiled once for all whole numbers, under a name without its types, which have all columns of
    # all tables in theirs; and is handed where a table begins, as an array is seven values at each call.

    def _widened(one: Type) -> Type:
        return int64 if isinstance(one, Integer) else one

    class _Rows(Type):
        """Where a table of records begins."""

        def __init__(self, record: Type) -> None:
            self.record = record
            super().__init__(f"rows of {record}")

    register_model(_Rows)(models.OpaqueModel)

    def _rows(context: BaseContext, builder: IRBuilder, sig: Signature, args: tuple[Value, ...]) -> Value:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.bitcast(data, context.get_value_type(sig.return_type))

    def _row_type(table: Type, at: Type) -> Type | None:
        return table.record if isinstance(table, _Rows) and isinstance(at, Integer) else None

    def _row(context: BaseContext, builder: IRBuilder, sig: Signature, args: tuple[Value, ...]) -> Value:
        at = context.cast(builder, args[1], sig.args[1], int64)
        begin = builder.mul(at, context.get_constant(int64, sig.args[0].record.size))
        return builder.bitcast(builder.gep(args[0], [begin]), context.get_value_type(sig.return_type))

    type_callable(rows)(lambda _typing: lambda table: _Rows(table.dtype))
    lower_builtin(rows, Array)(_rows)
    type_callable(getitem)(lambda _typing: _row_type)
    lower_builtin(getitem, _Rows, Integer)(_row)

    class _Inner(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
        """An inner function, neither linked nor turned into machine code."""

        def finalize(self) -> None:
            self._finalized = True

    def _named(name: str, _types: object, *, abi_tags: object = (), uid: int | None = None) -> str:
        return str(mangle(name, (), abi_tags=abi_tags, uid=uid))

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _InnerLowering(NativeLowering):  # type: ignore[misc]  # numba has no types
        _name = "inner_lowering"

        def run_pass(self, state: StateDict) -> bool:
            state.library = _Inner(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            state.targetctx.mangler = _named  # the name of a type has all of its columns
            try:
                super().run_pass(state)
            finally:
                del state.targetctx.mangler
            nobody: Any = [].append  # where numba asks for the builtin that Python calls
            state.cr = state.cr._replace(cfunc=nobody)
            called = [state.library, *state.library._linking_libraries]  # noqa: SLF001 (numba shows it no other way)
            state.targetctx.insert_user_function(nobody, state.cr.fndesc, called)
            return True

    _functions: Any = Function
    _plain_call_type: Any = Function.get_call_type

    @cache
    def _looked_up(function: object, context: object, args: tuple[object, ...]) -> object:
        return _plain_call_type(function, context, args, {})

    def _call_type(function: object, context: object, args: tuple[object, ...], names: dict[str, object]) -> object:
        return _plain_call_type(function, context, args, names) if names else _looked_up(function, context, args)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _InnerTyping(NopythonTypeInference):  # type: ignore[misc]  # numba has no types
        _name = "inner_typing"

        def run_pass(self, state: StateDict) -> bool:
            before, _functions.get_call_type = _functions.get_call_type, _call_type  # others may add meanings
            try:
                return bool(super().run_pass(state))
            finally:
                _functions.get_call_type = before

    class _InnerCompiler(CompilerBase):  # type: ignore[misc]  # numba has no types
        def define_pipelines(self) -> list[Any]:
            found = DefaultPassBuilder.define_nopython_pipeline(self.state)
            ours: dict[Any, Any] = {NativeLowering: _InnerLowering, NopythonTypeInference: _InnerTyping}
            needless = (InlineClosureLikes, InlineOverloads)  # there is nothing of the kind
            found.passes = [(ours.get(one, one), why) for one, why in found.passes if one not in needless]
            found.finalize()
            return [found]


def entrance(function: _Function) -> _Function:
    """A function that Python calls, kept in the user's cache folder for the next process if that can be written to."""
    if numba is None:
        return function
    config = numba.config
    before, config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES, _PLACES
    try:
        return _compiled(function, cache=True)
    except RuntimeError:
        return _compiled(function)
    finally:
        config.CACHE_LOCATOR_CLASSES = before


def _compiled(function: _Function, **how: object) -> _Function:
    if numba is None:
        return function
    found: _Function = numba.njit(**_HOW, **how)(function)
    return found
