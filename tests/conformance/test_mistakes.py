"""Mistakes that servers of language models have shipped, and the tests here that would have found them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

TESTS = Path(__file__).parent.parent

# What went wrong -> tests, as file::name.
MISTAKES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "a character split over two tokens became U+FFFD, or its cut tail was lost": (
            "server/test_committer.py::test_a_split_character_is_never_replaced_mid_stream",
            "server/test_committer.py::test_a_really_cut_character_is_flushed_with_the_finish",
        ),
        "the first token's space was lost, or emitted text rewritten by a clean-up": (
            "server/test_committer.py::test_the_leading_space_of_a_sentencepiece_reply_is_the_tokenizers",
            "server/test_committer.py::test_spaces_before_punctuation_are_not_cleaned_up",
            "server/test_text_decoder.py::test_joined_pieces_equal_decode_for_any_token_stream",
        ),
        "the whole reply was decoded again for every token": (
            "server/test_text_decoder.py::test_every_token_is_looked_at_once",
        ),
        "a stop string in a token, over tokens or begun at the end was missed or lost text": (
            "server/test_committer.py::test_a_stop_string_inside_a_token_cuts_inside_it",
            "server/test_committer.py::test_a_stop_string_over_tokens_and_deltas_is_found",
            "server/test_committer.py::test_a_partial_match_is_flushed_at_eos_and_on_close",
        ),
        "a stop id inside an accepted run ended the reply as length": (
            "server/test_committer.py::test_a_stop_id_in_the_middle_of_a_run_ends_the_reply_there",
            "engine/test_equality.py::test_replies_end_inside_an_accepted_run",
        ),
        "after a stop early in a run, ids, logprobs, usage, cache or figures went on": (
            "server/test_committer.py::test_a_stop_early_in_a_long_run_ends_everything_there",
            "server/test_stream.py::test_a_cut_keeps_the_cache_and_drops_what_follows",
            "engine/test_engine_endings.py::test_what_follows_a_cut_is_not_found_again",
        ),
        "text held back for a stop string split a closing tag or a call's marker": (
            "server/test_committer.py::test_holding_back_never_splits_a_marker_that_is_one_token",
            "server/test_committer.py::test_holding_back_for_a_stop_string_never_loses_a_mark",
        ),
        "max_tokens was overrun by accepted guesses, or usage was not what was sent": (
            "engine/test_equality.py::test_replies_end_inside_an_accepted_run",
            "conformance/test_protocols.py::test_replies_are_the_same_on_every_protocol",
        ),
        "a client left, during the prompt too or without streaming, and the engine went on": (
            "server/test_chat_leaving.py::test_leaving_frees_the_engine",
            "server/test_chat_leaving.py::test_leaving_during_a_long_prefill",
            "server/test_realtime_leaving.py::test_leaving_frees_the_engine",
        ),
        "a turn cut off by a disconnect stayed in its session half-way": (
            "server/test_talk.py::test_without_being_asked_nothing_survives",
        ),
        "a reader that never reads grew the server's memory": (
            "server/test_chat_leaving.py::test_a_reader_that_never_reads_is_dropped",
            "server/test_realtime_leaving.py::test_a_reader_that_never_reads_is_dropped",
            "server/test_realtime_leaving.py::test_a_slow_reader_gets_every_character_in_fewer_messages",
        ),
        "health said 200 while the engine was stuck": (
            "server/test_app.py::test_an_engine_stuck_in_a_step_is_not_healthy",
        ),
        "usage came unasked or without choices; events had two prefixes": (
            "server/test_chat_completions.py::test_usage_only_when_asked_and_then_alone",
            "server/test_chat_completions.py::test_chunk_order",
        ),
        "finish_reason was an empty string, or came more than once": (
            "server/test_chat_completions.py::test_chunk_order",
            "server/test_chat_completions.py::test_several_choices",
        ),
        "n: 0 was never answered": ("server/test_chat_refusals.py::test_refusals",),
        "a truncated call was reported as tool_calls; parallel calls shared an index": (
            "server/test_chat_tools.py::test_calls_that_are_cut_off_end_with_length",
            "server/test_chat_tools.py::test_parallel_calls_have_indices_of_their_own",
            "conformance/test_protocols.py::test_a_call_that_is_cut_is_no_call_to_answer",
        ),
        "a prompt too long was refused within a 200, or by an empty stream": (
            "server/test_chat_refusals.py::test_refusals",
            "server/test_service.py::test_what_cannot_fit_is_refused_before_it_is_tokenised",
        ),
        "a template's BOS was doubled": ("server/test_tokenizer.py::test_no_bos_is_added_to_a_rendered_template",),
        "a template that raises was a 500": (
            "server/test_chat_refusals.py::test_a_template_that_refuses_is_a_400_in_its_own_words",
            "server/test_chat_template.py::test_a_template_that_raises_is_quoted",
        ),
        "a preflight was asked for a key": (
            "server/test_auth.py::test_preflights_need_no_key_and_refusals_carry_cors",
        ),
        "modalities that cannot be had were ignored": (
            "server/test_chat_refusals.py::test_refusals",
            "server/test_session.py::test_mistakes_are_errors_on_an_open_session",
        ),
        "text differed with speculation, or beside others in the batch; seeds were ignored": (
            "engine/test_equality.py::test_any_drafter_gives_the_plain_reply",
            "engine/test_equality.py::test_batch_mates_change_nothing",
            "server/test_chat_completions.py::test_the_seed_that_was_used_replays_the_reply",
            "conformance/test_protocols.py::test_replies_are_the_same_on_every_protocol",
        ),
        "logprobs were all 0.0, or there for the first token alone": (
            "engine/test_equality.py::test_logprobs_are_those_of_plain_decoding",
            "server/test_committer_random.py::test_logprobs_and_figures_end_where_the_tokens_end",
        ),
        "JSON was broken under load": (
            "server/test_structured_outputs.py::test_many_formats_at_once_do_not_get_in_each_others_way",
        ),
        "penalties were counted without the path through the tree": (
            "engine/test_sampling.py::test_penalties_count_the_tokens_of_the_path",
        ),
        "prefix hits were lost with speculation": (
            "engine/test_equality.py::test_prefix_hits_do_not_depend_on_speculation",
        ),
        "many streams were slower with speculation than without": (
            "spec/test_guard.py::test_what_is_slower_is_only_tried",
        ),
        "special tokens that a user typed were control tokens": (
            "server/test_template_guard.py::test_a_user_cannot_end_the_turn",
            "server/test_template_guard.py::test_nothing_typed_ever_becomes_a_control_token",
        ),
    }
)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_there_is_a_test_for_each(mistake: str) -> None:
    for named in MISTAKES[mistake]:
        file, name = named.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), named
