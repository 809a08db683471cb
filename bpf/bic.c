/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* BIC TCP: L. Xu, K. Harfoush, I. Rhee, "Binary increase congestion control for fast long-distance networks", INFOCOM 2004.
 * Between the window of the last loss (most) and the one after it (least) the window goes to the middle in each round trip, by
 * LARGEST segments at most and SMALLEST at least; beyond the last loss it probes as slow start does, up to the same step. Below LOW
 * segments it is Reno.
 *
 * After a loss the window is BETA smaller; where it was below that of the loss before, the next middle is nearer (fast convergence).
 */
#include "congestion.h"

/* Fractions of a segment. */
#define UNIT 65536
#define LARGEST 32
#define SMALLEST (UNIT / 100)
#define LOW 14
/* BETA = 1/8. */
#define WITHOUT_BETA(window) ((window) - (window) / 8)
#define UNKNOWN 0x3fffffff

struct bic {
	u32 most; /* the window of the last loss */
	u32 target; /* the middle */
	u32 probes; /* whether beyond the last loss */
	u32 step; /* of the probe */
	u32 probe_target;
	u32 rest; /* of a segment, in units */
};

SECTION("struct_ops/init") void init(u64 *arguments)
{
	struct bic *bic = OWN(TCP(arguments));

	bic->most = UNKNOWN;
	bic->target = UNKNOWN;
	bic->probes = 0;
	bic->step = 0;
	bic->probe_target = 0;
	bic->rest = 0;
}

/* By how much the window grows in a round trip, in units. */
INLINE u64 step(struct bic *bic, u32 window)
{
	u32 distance = bic->target > window ? bic->target - window : 0;

	if (bic->probes)
		return (u64)bic->step * UNIT;
	if (distance > LARGEST)
		return (u64)LARGEST * UNIT;
	return distance ? (u64)distance * UNIT : SMALLEST;
}

/* Where the window stands now. */
INLINE void look(struct bic *bic, u32 window)
{
	if (bic->probes) {
		if (window >= bic->probe_target) {
			bic->step *= 2;
			bic->probe_target = window + bic->step;
		}
		if (bic->step >= LARGEST)
			bic->probes = 0;
	} else if (window < bic->most) {
		bic->target = window + (bic->most - window) / 2;
		/* The last half segment: there. */
		if (bic->target == window)
			bic->target = bic->most;
	} else {
		bic->probes = 1;
		bic->step = 1;
		bic->probe_target = window + 1;
		bic->most = UNKNOWN;
		bic->target = UNKNOWN;
	}
}

SECTION("struct_ops/cong_avoid") void cong_avoid(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct bic *bic = OWN(tcp);
	u32 acked = arguments[2], window;
	u64 more;

	if (!is_used(tcp))
		return;
	if (in_slow_start(tcp))
		acked = slow_start(tcp, acked);
	if (!acked)
		return;
	window = most(tcp->snd_cwnd, 1);
	if (window < LOW) {
		avoid_as_reno(tcp, acked);
		return;
	}
	more = step(bic, window) * acked / window + bic->rest;
	bic->rest = more % UNIT;
	window += more / UNIT;
	set_window(tcp, window);
	look(bic, window);
}

SECTION("struct_ops/ssthresh") u32 ssthresh(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct bic *bic = OWN(tcp);
	u32 window = tcp->snd_cwnd, before = bic->most, after = WITHOUT_BETA(window);

	bic->probes = 0;
	bic->rest = 0;
	if (window < LOW) {
		bic->most = UNKNOWN;
		bic->target = UNKNOWN;
		return half(tcp);
	}
	bic->most = window < before && before != UNKNOWN ? (window + after) / 2 : window;
	bic->target = after + (bic->most - after) / 2;
	return most(after, 2);
}

SECTION(".struct_ops") struct tcp_congestion_ops CONTROLLER = {
	.init = (void *)init,
	.ssthresh = (void *)ssthresh,
	.cong_avoid = (void *)cong_avoid,
	.pkts_acked = 0,
	.undo_cwnd = (void *)undo,
	.flags = FOR_EVERYONE,
	.name = IN_TEXT(CONTROLLER),
};
