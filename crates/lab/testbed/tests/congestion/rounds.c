/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A controller outside the kernel, round by round: what it makes of a window is printed after each. Reads lines
 *
 *   rounds COUNT BASE_US FITS    so many round trips of BASE_US, longer as soon as more than FITS segments are under way
 *   loss                         a segment was lost, and the threshold is where recovery ends
 */
#include SOURCE
#include <stdio.h>
#include <string.h>

static u64 clock_us;
static struct tcp_sock tcp;

u64 now_ns(void)
{
	return clock_us * 1000;
}

static void round_trip(u32 base_us, u32 fits)
{
	u32 sent = tcp.snd_cwnd, first = tcp.snd_nxt, segment;
	u32 queued = sent > fits ? sent - fits : 0;
	struct ack_sample sample = { .pkts_acked = 1, .rtt_us = base_us + (u64)queued * base_us / fits };

	tcp.max_packets_out = sent;
	tcp.snd_nxt = first + sent;
	for (segment = 1; segment <= sent; segment++) {
		u64 sampled[] = { (u64)&tcp, (u64)&sample }, acked[] = { (u64)&tcp, first + segment, 1 };

		clock_us += sample.rtt_us / sent;
		tcp.delivered++;
		if (CONTROLLER.pkts_acked)
			((void (*)(u64 *))CONTROLLER.pkts_acked)(sampled);
		((void (*)(u64 *))CONTROLLER.cong_avoid)(acked);
	}
	printf("%u ", tcp.snd_cwnd);
}

int main(void)
{
	char word[16];
	u32 count, base_us, fits;
	u64 own[] = { (u64)&tcp };

	tcp.snd_cwnd = 10;
	tcp.snd_cwnd_clamp = 1 << 30;
	tcp.snd_ssthresh = 0x7fffffff;
	((void (*)(u64 *))CONTROLLER.init)(own);
	while (scanf("%15s", word) == 1) {
		if (!strcmp(word, "loss")) {
			tcp.prior_cwnd = tcp.snd_cwnd;
			tcp.snd_ssthresh = ((u32 (*)(u64 *))CONTROLLER.ssthresh)(own);
			/* Recovery never makes a window larger. */
			tcp.snd_cwnd = least(tcp.snd_cwnd, tcp.snd_ssthresh);
			printf("| %u ", tcp.snd_cwnd);
		} else if (scanf("%u %u %u", &count, &base_us, &fits) == 3) {
			while (count--)
				round_trip(base_us, fits);
		} else {
			return 1;
		}
	}
	printf("\n");
	return 0;
}
