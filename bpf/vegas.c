/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* TCP Vegas: L. Brakmo, L. Peterson, "TCP Vegas: end to end congestion avoidance on a global internet", IEEE JSAC 13 (1995).
 * Once in a round trip, with the shortest round trip ever (base) and the shortest of this round (RTT):
 *
 *   queued = (W / base - W / RTT) * base      segments of ours that stand in the queue
 *   slow start: doubles in every other round; ends when more than GAMMA are queued
 *   avoidance:  one segment more below ALPHA, one fewer above BETA
 *
 * Losses as in Reno.
 */
#include "congestion.h"

#define ALPHA 2
#define BETA 4
#define GAMMA 1

struct vegas {
	u32 base_us;
	u32 least_us; /* of this round; nought before its first sample */
	u32 round_ends; /* once this is acknowledged */
	u32 grows; /* whether slow start grows in this round */
};

SECTION("struct_ops/init") void init(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct vegas *vegas = OWN(tcp);

	vegas->base_us = 0;
	vegas->least_us = 0;
	vegas->round_ends = tcp->snd_nxt;
	vegas->grows = 1;
}

SECTION("struct_ops/pkts_acked") void pkts_acked(u64 *arguments)
{
	struct vegas *vegas = OWN(TCP(arguments));
	const struct ack_sample *sample = (void *)arguments[1];
	s32 rtt_us = sample->rtt_us;

	if (rtt_us <= 0)
		return;
	if (!vegas->base_us || (u32)rtt_us < vegas->base_us)
		vegas->base_us = rtt_us;
	if (!vegas->least_us || (u32)rtt_us < vegas->least_us)
		vegas->least_us = rtt_us;
}

INLINE void end_of_round(struct tcp_sock *tcp, struct vegas *vegas)
{
	u32 window = tcp->snd_cwnd, rtt_us = vegas->least_us, base_us = vegas->base_us;
	u32 queued = (u64)window * (rtt_us - base_us) / rtt_us;

	if (in_slow_start(tcp)) {
		if (queued > GAMMA) {
			window -= least(window - 2, queued - GAMMA);
			tcp->snd_ssthresh = most(window, 2);
			set_window(tcp, tcp->snd_ssthresh);
		} else {
			vegas->grows = !vegas->grows;
		}
	} else if (queued < ALPHA && is_used(tcp)) {
		set_window(tcp, (u64)window + 1);
	} else if (queued > BETA) {
		set_window(tcp, most(window - 1, 2));
	}
}

SECTION("struct_ops/cong_avoid") void cong_avoid(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct vegas *vegas = OWN(tcp);
	u32 ack = arguments[1], acked = arguments[2];

	if (is_after(ack, vegas->round_ends)) {
		vegas->round_ends = tcp->snd_nxt;
		/* Without a sample there is nothing to go by but losses. */
		if (vegas->least_us && vegas->base_us)
			end_of_round(tcp, vegas);
		else if (is_used(tcp))
			grow_as_reno(tcp, acked);
		vegas->least_us = 0;
	} else if (in_slow_start(tcp) && vegas->grows && is_used(tcp)) {
		slow_start(tcp, acked);
	}
}

SECTION("struct_ops/ssthresh") u32 ssthresh(u64 *arguments)
{
	return half(TCP(arguments));
}

SECTION(".struct_ops") struct tcp_congestion_ops CONTROLLER = {
	.init = (void *)init,
	.ssthresh = (void *)ssthresh,
	.cong_avoid = (void *)cong_avoid,
	.pkts_acked = (void *)pkts_acked,
	.undo_cwnd = (void *)undo,
	.flags = FOR_EVERYONE,
	.name = IN_TEXT(CONTROLLER),
};
