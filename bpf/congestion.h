/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What TCP congestion controllers in BPF (struct_ops) need of the kernel: the few fields that they read, found in the running
 * kernel by name (CO-RE), and Reno's parts that all of them fall back to. Needs no headers but this one.
 *
 * Built with -DCONTROLLER=name, which names both the controller and its map: that of one lab is told from any other.
 */
#ifndef FARHOP_CONGESTION_H
#define FARHOP_CONGESTION_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define IN_TEXT_(name) #name
#define IN_TEXT(name) IN_TEXT_(name)

char _license[] SECTION("license") = "Dual MIT/GPL";

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct sock {
	int unused;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 max_packets_out;
	u32 delivered;
	u32 snd_nxt;
	u32 srtt_us; /* eight times the smoothed round trip */
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* below nought: this acknowledgement gives none */
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* The members that are used; libbpf finds them in the kernel's own by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
	u32 flags;
};

/* Whoever may open a socket may choose it: TCP_CONG_NON_RESTRICTED. */
#define FOR_EVERYONE 1

#ifdef __bpf__
static u64 (*const now_ns)(void) = (void *)5; /* bpf_ktime_get_ns */
#else
u64 now_ns(void); /* a test's */
#endif

/* Arguments are an array of words. */
#define TCP(arguments) ((struct tcp_sock *)(arguments)[0])
#define OWN(tcp) ((void *)(tcp)->inet_conn.icsk_ca_priv)

INLINE u32 least(u32 one, u32 other)
{
	return one < other ? one : other;
}

INLINE u32 most(u32 one, u32 other)
{
	return one > other ? one : other;
}

/* Whether sequence number `one` lies behind `other`. */
INLINE int is_after(u32 one, u32 other)
{
	return (s32)(one - other) > 0;
}

INLINE int in_slow_start(const struct tcp_sock *tcp)
{
	return tcp->snd_cwnd < tcp->snd_ssthresh;
}

/* A window that is not used does not grow (RFC 7661 §4.1: no less than half of it was under way). */
INLINE int is_used(const struct tcp_sock *tcp)
{
	return tcp->snd_cwnd <= 2 * tcp->max_packets_out;
}

INLINE void set_window(struct tcp_sock *tcp, u64 segments)
{
	u32 clamp = tcp->snd_cwnd_clamp;

	tcp->snd_cwnd = segments > clamp ? clamp : most(segments, 1);
}

/* RFC 5681 §3.1: one segment for each that is acknowledged, up to the threshold. What is left over is for avoidance. */
INLINE u32 slow_start(struct tcp_sock *tcp, u32 acked)
{
	u32 window = tcp->snd_cwnd;
	u32 grown = least(window + acked, tcp->snd_ssthresh);

	set_window(tcp, grown);
	return acked - least(acked, grown - window);
}

/* RFC 5681 §3.1: one segment for each window that is acknowledged. */
INLINE void avoid_as_reno(struct tcp_sock *tcp, u32 acked)
{
	u32 window = most(tcp->snd_cwnd, 1);
	u32 count = tcp->snd_cwnd_cnt + acked;

	if (count >= window) {
		set_window(tcp, (u64)window + count / window);
		count %= window;
	}
	tcp->snd_cwnd_cnt = count;
}

INLINE void grow_as_reno(struct tcp_sock *tcp, u32 acked)
{
	if (in_slow_start(tcp))
		acked = slow_start(tcp, acked);
	if (acked)
		avoid_as_reno(tcp, acked);
}

/* RFC 5681 §3.2. */
INLINE u32 half(const struct tcp_sock *tcp)
{
	return most(tcp->snd_cwnd / 2, 2);
}

/* A reduction that was for nothing is taken back. */
SECTION("struct_ops/undo") u32 undo(u64 *arguments)
{
	struct tcp_sock *tcp = TCP(arguments);

	return most(tcp->snd_cwnd, tcp->prior_cwnd);
}

#endif
