/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* TCP Westwood+: S. Mascolo et al., "TCP Westwood: bandwidth estimation for enhanced transport over wireless links", MobiCom
 * 2001, with one sample in a round trip as L. Grieco, S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno,
 * and Vegas TCP congestion control", ACM CCR 34 (2004):
 *
 *   b_k  = segments delivered in a round / its time
 *   B_k  = 7/8 B_(k-1) + 1/8 b_k
 *   after a loss:  threshold = B * shortest round trip
 *
 * Grows as Reno.
 */
#include "congestion.h"

/* Rates are in 1/256 segment a second. */
#define UNIT 256
/* A round is no shorter: the clocks of both ends are coarser than some networks. */
#define SHORTEST_US 50000

struct westwood {
	u64 began_us;
	u64 rate;
	u32 delivered; /* at the beginning of this round */
	u32 rtt_us;
	u32 rtt_least_us;
};

SECTION("struct_ops/init") void init(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct westwood *westwood = OWN(tcp);

	westwood->began_us = now_ns() / 1000;
	westwood->rate = 0;
	westwood->delivered = tcp->delivered;
	westwood->rtt_us = tcp->srtt_us / 8;
	westwood->rtt_least_us = westwood->rtt_us;
}

SECTION("struct_ops/pkts_acked") void pkts_acked(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct westwood *westwood = OWN(tcp);
	const struct ack_sample *sample = (void *)arguments[1];
	s32 rtt_us = sample->rtt_us;
	u64 now_us = now_ns() / 1000, took_us = now_us - westwood->began_us, rate;

	if (rtt_us > 0) {
		westwood->rtt_us = rtt_us;
		if (!westwood->rtt_least_us || (u32)rtt_us < westwood->rtt_least_us)
			westwood->rtt_least_us = rtt_us;
	}
	if (took_us < most(westwood->rtt_us, SHORTEST_US))
		return;
	rate = (u64)(tcp->delivered - westwood->delivered) * UNIT * 1000000 / took_us;
	/* The first sample is all that is known. */
	westwood->rate = westwood->rate ? (7 * westwood->rate + rate) / 8 : rate;
	westwood->delivered = tcp->delivered;
	westwood->began_us = now_us;
}

SECTION("struct_ops/cong_avoid") void cong_avoid(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);

	if (is_used(tcp))
		grow_as_reno(tcp, arguments[2]);
}

SECTION("struct_ops/ssthresh") u32 ssthresh(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct westwood *westwood = OWN(tcp);
	u64 fits = westwood->rate * westwood->rtt_least_us / (UNIT * 1000000ULL);

	return westwood->rate ? most(fits, 2) : half(tcp);
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
