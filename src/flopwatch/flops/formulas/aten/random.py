"""Random numbers: making them is integer work and tables of a generator, which differ from one to the next; none is counted."""

from __future__ import annotations

from flopwatch.flops.formulas import free

free(
    "random numbers are not counted: generators differ",
    "aten::bernoulli",
    "aten::binomial",
    "aten::cauchy",
    "aten::exponential",
    "aten::geometric",
    "aten::log_normal",
    "aten::multinomial",
    "aten::normal",
    "aten::normal_functional",
    "aten::poisson",
    "aten::rand",
    "aten::rand_like",
    "aten::randint",
    "aten::randint_like",
    "aten::randn",
    "aten::randn_like",
    "aten::random",
    "aten::randperm",
    "aten::uniform",
    "aten::_sample_dirichlet",
    "aten::_standard_gamma",
    "aten::_philox_key_fold_in",
    "aten::_philox_key_split",
    "aten::_philox_normal",
    "aten::_philox_uniform",
    "aten::_sobol_engine_draw",
    "aten::_sobol_engine_ff",
    "aten::_sobol_engine_initialize_state",
    "aten::_sobol_engine_scramble",
    "rngprims::philox_rand",
    "inductor_prims::inductor_reserve_rng_state",
)
