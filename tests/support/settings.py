"""Settings that change how PostgreSQL reads, prints or executes statements, each with an unusual value.

A server, a database, a role or an application may set them. No result may depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

# by what the settings change
GROUPS: dict[str, dict[str, str]] = {
    "strings": {"standard_conforming_strings": "off", "backslash_quote": "off", "escape_string_warning": "off"},
    "names": {"quote_all_identifiers": "on", "search_path": "pg_temp, public"},
    "times": {
        "DateStyle": "SQL, DMY",
        "IntervalStyle": "sql_standard",
        "TimeZone": "Asia/Kathmandu",
        "timezone_abbreviations": "Australia",
    },
    "texts": {
        "array_nulls": "off",
        "bytea_output": "escape",
        "extra_float_digits": "-15",
        "xmlbinary": "hex",
        "xmloption": "document",
        "lc_messages": "C.UTF-8",
        "lc_monetary": "C.UTF-8",
        "lc_numeric": "C.UTF-8",
        "lc_time": "C.UTF-8",
        "default_text_search_config": "pg_catalog.english",
        "transform_null_equals": "on",
    },
    "plpgsql": {
        "plpgsql.check_asserts": "off",
        "plpgsql.extra_errors": "all",
        "plpgsql.extra_warnings": "all",
        "plpgsql.print_strict_params": "on",
        "plpgsql.variable_conflict": "use_column",
        "check_function_bodies": "off",
    },
    "variables": {"plpgsql.variable_conflict": "use_variable"},
    "parallel": {
        "debug_parallel_query": "regress",
        "force_parallel_mode": "regress",
        "parallel_leader_participation": "off",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0",
        "min_parallel_index_scan_size": "0",
        "jit_above_cost": "0",
    },
    "plans": {
        "plan_cache_mode": "force_generic_plan",
        "constraint_exclusion": "on",
        "cursor_tuple_fraction": "1",
        "enable_bitmapscan": "off",
        "enable_hashagg": "off",
        "enable_hashjoin": "off",
        "enable_indexonlyscan": "off",
        "enable_indexscan": "off",
        "enable_material": "off",
        "enable_memoize": "off",
        "enable_partition_pruning": "off",
        "enable_partitionwise_aggregate": "on",
        "enable_partitionwise_join": "on",
        "enable_presorted_aggregate": "off",
        "enable_tidscan": "off",
        "from_collapse_limit": "1",
        "geqo_threshold": "2",
        "join_collapse_limit": "1",
        "recursive_worktable_factor": "1000",
        "work_mem": "64",
    },
    "other plans": {
        "constraint_exclusion": "off",
        "enable_distinct_reordering": "off",
        "enable_group_by_reordering": "off",
        "enable_incremental_sort": "off",
        "enable_mergejoin": "off",
        "enable_nestloop": "off",
        "enable_self_join_elimination": "off",
        "enable_seqscan": "off",
        "enable_sort": "off",
        "max_parallel_workers_per_gather": "0",
    },
    "transactions": {
        "default_transaction_deferrable": "on",
        "default_transaction_isolation": "serializable",
        "row_security": "off",
        "synchronous_commit": "off",
    },
    "repeatable read": {"default_transaction_isolation": "repeatable read"},
    "rest": {
        "client_min_messages": "error",
        "default_statistics_target": "1",
        "default_table_access_method": "heap",
        "default_toast_compression": "pglz",
        "event_triggers": "on",
        "lo_compat_privileges": "on",
        "password_encryption": "md5",
        "stats_fetch_consistency": "none",
        "track_activities": "off",
    },
}


def supported(conn: psycopg.Connection, settings: dict[str, str]) -> dict[str, str]:
    """The settings that the server has."""
    conn.execute("load 'plpgsql'")
    names = "select lower(name) from pg_settings where lower(name) = any (%s)"
    known = {name for (name,) in conn.execute(names, ([*map(str.lower, settings)],))}
    return {name: value for name, value in settings.items() if name.lower() in known}


def all_but(*groups: str) -> dict[str, str]:
    """The settings of all groups but ``groups``. Of two values for a setting, the first one counts."""
    merged: dict[str, str] = {}
    for group, settings in GROUPS.items():
        merged |= {name: value for name, value in settings.items() if group not in groups and name not in merged}
    return merged


def set_locally(conn: psycopg.Connection, settings: dict[str, str], names: Iterable[str]) -> None:
    """Give the settings their values until the transaction ends, and the others of ``names`` their defaults."""
    for name in names:
        conn.execute(f"set local {name} to default".encode())
    for name, value in settings.items():
        conn.execute("select set_config(%s, %s, true)", (name, value))
