/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* TCP Hybla: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of
 * Satellite Communications and Networking 22 (2004). A connection with a long round trip grows its window as fast in time as one
 * whose round trip is RTT0 would:
 *
 *   rho = RTT / RTT0, at least 1
 *   slow start:  W <- W + 2^rho - 1   for each segment acknowledged
 *   avoidance:   W <- W + rho^2 / W
 *   begins with  W = rho
 *
 * Losses as in Reno. The threshold is unknown at the beginning; pacing is the kernel's.
 */
#include "congestion.h"

#define RTT0_US 25000
#define EIGHTHS 8
/* Fractions of a segment. */
#define UNIT 65536ULL
/* 2^16 segments for one acknowledgement are more than any window. */
#define LARGEST_POWER 16

struct hybla {
	u32 rtt_least_us;
	u32 rho; /* in eighths */
	u32 rest; /* of a segment, in units */
};

INLINE void take_rtt(struct hybla *hybla, u32 rtt_us)
{
	if (rtt_us && (!hybla->rtt_least_us || rtt_us < hybla->rtt_least_us)) {
		hybla->rtt_least_us = rtt_us;
		hybla->rho = most((u32)((u64)rtt_us * EIGHTHS / RTT0_US), EIGHTHS);
	}
}

/* 2^rho - 1 in units; the fraction by eighth roots of two, which are in 128ths. */
INLINE u64 growth(u32 rho)
{
	u32 whole = least(rho / EIGHTHS, LARGEST_POWER), power = 128;

	switch (rho % EIGHTHS) {
	case 1: power = 140; break;
	case 2: power = 152; break;
	case 3: power = 166; break;
	case 4: power = 181; break;
	case 5: power = 197; break;
	case 6: power = 215; break;
	case 7: power = 235; break;
	}
	return ((power * (UNIT / 128)) << whole) - UNIT;
}

SECTION("struct_ops/init") void init(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct hybla *hybla = OWN(tcp);

	hybla->rtt_least_us = 0;
	hybla->rho = EIGHTHS;
	hybla->rest = 0;
	take_rtt(hybla, tcp->srtt_us / 8);
	set_window(tcp, most(tcp->snd_cwnd, hybla->rho / EIGHTHS));
}

SECTION("struct_ops/pkts_acked") void pkts_acked(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	const struct ack_sample *sample = (void *)arguments[1];
	s32 rtt_us = sample->rtt_us;

	if (rtt_us > 0)
		take_rtt(OWN(tcp), rtt_us);
}

SECTION("struct_ops/cong_avoid") void cong_avoid(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);
	struct hybla *hybla = OWN(tcp);
	u32 acked = arguments[2], window = most(tcp->snd_cwnd, 1), rho = hybla->rho;
	u64 more;

	if (!is_used(tcp))
		return;
	if (in_slow_start(tcp)) {
		more = growth(rho) * acked + hybla->rest;
		/* Not beyond the threshold: it ends slow start. */
		if (window + more / UNIT > tcp->snd_ssthresh)
			more = (u64)(tcp->snd_ssthresh - window) * UNIT;
	} else {
		more = (u64)rho * rho * (UNIT / EIGHTHS / EIGHTHS) * acked / window + hybla->rest;
	}
	hybla->rest = more % UNIT;
	set_window(tcp, window + more / UNIT);
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
