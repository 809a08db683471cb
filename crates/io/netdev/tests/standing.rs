//! What stands at a device, whose it is, and who may change it, in the real kernel. Needs root; without it each test says so and passes.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

mod support;

use std::process::Command;

use farhop_netdev::{Error, Hold, MarkRule, Shaping, shaped};

use support::{DEVICE, Scene, call, shaping};

#[test]
fn the_same_again_changes_nothing_and_another_takes_its_place_and_all_of_it_goes() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.rules();
    scene.apply(&shaping()).unwrap();
    let once = scene.rules();
    assert!(!scene.apply(&shaping()).unwrap().new);
    assert_eq!(scene.rules(), once);
    let mut other = shaping();
    other.rate = 2_000_000;
    other.leaves[0].rate = 600_000;
    other.leaves[0].ceiling = 600_000;
    scene.apply(&other).unwrap();
    let rules = scene.rules();
    assert!(rules.contains("rate 600Kbit ceil 600Kbit") && !rules.contains("rate 300Kbit"), "{rules}");
    let gone = [scene.take_away(), scene.take_away()];
    assert_eq!((gone, scene.rules()), ([true, false], before));
}

#[test]
fn what_somebody_has_flushed_deleted_or_changed_is_told() {
    let Some(scene) = Scene::new() else { return };
    let mut shaping = shaping();
    let nets = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().unwrap());
    let ports = vec![(20, 21), (25, 25), (16384, 32767)];
    shaping.rules.push(MarkRule { ports, networks: nets.to_vec(), minor: 0x50, ..MarkRule::default() });
    shaping.media = vec![call(&["10.79.0.2:9002", "[fd79::2]:9002"], 9)];
    shaping.longest = Some(1_000);
    let put = || scene.apply(&shaping).unwrap();
    let changed = |applied| scene.sender.run(|| shaping.changed(&applied).unwrap()).unwrap();
    for (line, what) in [
        ("true", None),
        ("nft flush table inet farhop_link_sat0", Some("its rules and the media of its calls")),
        ("nft flush chain inet farhop_link_sat0 leave", Some("its rules")),
        ("nft flush chain inet farhop_link_sat0 leaf_50", Some("its rules")),
        ("nft insert rule inet farhop_link_sat0 leave accept", Some("its rules")),
        ("nft delete table inet farhop_link_sat0", Some("its rules and the media of its calls")),
        // As many rules as before, and others.
        (
            "nft replace rule inet farhop_link_sat0 leaf_50 handle $(handle leaf_50 'dscp set 0x0a') ip dscp set 0 accept",
            Some("its rules"),
        ),
        (
            "nft replace rule inet farhop_link_sat0 rules handle $(handle rules 'goto leaf_60') goto leaf_10",
            Some("its rules"),
        ),
        (
            "nft replace rule inet farhop_link_sat0 arrive handle $(handle arrive 'size > 960') meta nfproto ipv4 accept",
            Some("its rules"),
        ),
        (
            "nft replace rule inet farhop_link_sat0 losing_50_1 handle $(handle losing_50_1 accept) drop",
            Some("its rules"),
        ),
        ("nft 'add chain inet farhop_link_sat0 leave { policy drop; }'", Some("its rules")),
        ("nft add chain inet farhop_link_sat0 other", Some("its rules")),
        ("nft flush map inet farhop_link_sat0 media_ip", Some("the media of its calls")),
        (
            "nft 'add element inet farhop_link_sat0 media_ip { 10.79.0.9 . 9 : goto call_0 }'",
            Some("the media of its calls"),
        ),
        (
            "nft replace rule inet farhop_link_sat0 call_0 handle $(handle call_0 limit) limit rate 600/second goto leaf_10",
            Some("the media of its calls"),
        ),
        (
            "tc class change dev sat0 classid fa40:50 htb prio 0 rate 200kbit ceil 1mbit",
            Some("the rates of its classes"),
        ),
        (
            "tc class change dev sat0 classid fa40:60 htb prio 5 rate 20kbit ceil 1mbit",
            Some("the rates of its classes"),
        ),
        (
            "tc class change dev sat0 classid fa40:50 htb prio 4 rate 200kbit ceil 900kbit",
            Some("the rates of its classes"),
        ),
        ("tc class change dev sat0 classid fa40:1 htb rate 2mbit", Some("the rates of its classes")),
        ("tc filter del dev sat0 parent fa40: protocol arp prio 64064", Some("the way of ARP")),
        (
            "tc filter replace dev sat0 parent fa40: protocol arp prio 64064 handle 800::1 u32 match u32 0 0 classid fa40:50",
            Some("the way of ARP"),
        ),
        ("tc filter add dev sat0 parent fa40: protocol ip prio 9 u32 match u32 0 0 classid fa40:60", None),
        ("tc qdisc replace dev sat0 parent fa40:50 pfifo limit 9", Some("its queues")),
        ("nft flush table inet farhop_link_sat0; tc class del dev sat0 classid fa40:50", Some("its queues")),
        ("tc qdisc del dev sat0 root", Some("its queues")),
        ("ip link set sat0 mtu 1400", Some("the size of its packets")),
    ] {
        let applied = put();
        scene.tool(&scene.sender, &format!("{HANDLE}; {line}"));
        assert_eq!(changed(applied), what, "{line}");
    }
    let applied = put();
    assert_eq!(changed(applied.clone()), None);
    // What is changed from here is told apart, and others are heard of all the same.
    let later = Shaping {
        media: vec![call(&["10.79.0.2:9004"], 9), call(&["10.79.0.2:9005"], 9)],
        ..shaping.clone()
    };
    let rules = scene.name_media(&shaping, &later.media);
    let applied = farhop_netdev::Applied { rules, ..applied };
    let changed = || scene.sender.run(|| later.changed(&applied).unwrap()).unwrap();
    let speaker = scene.speak("10.79.0.1");
    speaker.send_to(b"x", ("10.79.0.2", 9004)).unwrap();
    assert_eq!(changed(), None, "what counts is no change");
    scene.tool(&scene.sender, "nft flush chain inet farhop_link_sat0 call_1");
    assert_eq!(changed(), Some("the media of its calls"));
}

/// The handle of a rule, by its chain and something of it.
const HANDLE: &str = r#"handle() { nft -n -a list chain inet farhop_link_sat0 $1 | grep -m1 -e "$2" | sed 's/.*# handle //'; }"#;

#[test]
fn two_at_once_wait_for_each_other_and_what_is_kept_is_refused() {
    let Some(scene) = Scene::new() else { return };
    let sender = &scene.sender;
    let applied: Vec<bool> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..4).map(|_| scope.spawn(|| scene.apply(&shaping()).unwrap().new)).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    assert_eq!(applied.iter().filter(|new| **new).count(), 1, "{applied:?}");
    let applied = scene.apply(&shaping()).unwrap();
    assert_eq!(sender.run(|| shaping().changed(&applied).unwrap()).unwrap(), None);
    let kept = sender
        .run(|| Hold::take(DEVICE).unwrap().keep("control socket /x/link.sock\x1b[2J").unwrap())
        .unwrap();
    let refused =
        |()| sender.run(|| Hold::take(DEVICE).map(drop).map_err(|it| it.to_string())).unwrap().unwrap_err();
    let line = format!(
        "sat0 is kept by a running `farhop link run` (process {}, control socket /x/link.sock[2J), which would put its own back; \
         end that one first, or give it the new settings and start it anew",
        std::process::id()
    );
    assert_eq!((refused(()), refused(())), (line.clone(), line));
    // Another device, and the same name in another namespace, are others.
    assert!(sender.run(|| Hold::take("sat1").is_ok()).unwrap());
    assert!(scene.receiver.run(|| Hold::take(DEVICE).is_ok()).unwrap());
    drop(kept);
    assert!(sender.run(|| Hold::take(DEVICE).is_ok()).unwrap());
    let none = sender.run(|| Hold::take("no/name")).unwrap();
    assert!(matches!(none, Err(Error::NoInterface { .. })));
}

#[test]
fn a_first_apply_that_fails_leaves_nothing_of_its_own() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.rules();
    let mut bad = shaping();
    // The kernel refuses the class after the root is there.
    bad.leaves[0].minor = 1;
    scene.apply(&bad).unwrap_err();
    assert_eq!(scene.rules(), before);
    scene.apply(&shaping()).unwrap();
    let standing = scene.rules();
    scene.apply(&bad).unwrap_err();
    assert_eq!(scene.rules().lines().next(), standing.lines().next(), "what stood before is not taken away");
}

#[test]
fn what_is_others_is_left_alone() {
    let Some(scene) = Scene::new() else { return };
    scene.tool(
        &scene.sender,
        "tc qdisc add dev sat0 root handle 1: tbf rate 1mbit burst 5kb latency 50ms;
         nft 'add table inet mine; add chain inet mine out { type filter hook postrouting priority mangle; };
          add rule inet mine out counter'",
    );
    let before = scene.tool(&scene.sender, "tc qdisc show; nft -s list ruleset");
    let line = scene.apply(&shaping()).unwrap_err();
    assert_eq!(
        line,
        "sat0 has a queue of somebody else's at its root ('tbf 1:'), which is left alone; take it away with `tc qdisc del dev sat0 root` if it may go"
    );
    assert!(!scene.take_away());
    assert_eq!(scene.tool(&scene.sender, "tc qdisc show; nft -s list ruleset"), before);
    scene.tool(&scene.sender, "tc qdisc del dev sat0 root");
    scene.apply(&shaping()).unwrap();
    assert!(scene.take_away());
    assert!(scene.tool(&scene.sender, "nft list ruleset").contains("table inet mine"));
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let Some(scene) = Scene::new() else { return };
    let mut nowhere = shaping();
    nowhere.interface = "sat9".into();
    let line = scene.apply(&nowhere).unwrap_err();
    assert_eq!(line, "there is no network device 'sat9' here; `ip link` shows those that there are");
    scene.apply(&shaping()).unwrap();
    scene.sender.ip(&[format!("link del {DEVICE}")]).unwrap();
    let found = scene.sender.run(|| shaped(DEVICE).map_err(|it| it.to_string())).unwrap();
    assert!(found.unwrap_err().starts_with("there is no network device 'sat0'"));
    assert!(scene.take_away(), "the rules of a device that has vanished are taken away");
    assert!(!scene.tool(&scene.sender, "nft list ruleset").contains("farhop"));
}

#[test]
fn tools_that_are_missing_are_named_and_nothing_is_touched() {
    let Some(scene) = Scene::new() else { return };
    let before = scene.rules();
    let tc = scene.tool(&scene.sender, "command -v tc");
    let folder = std::env::temp_dir().join(format!("farhop-tools-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (tools, missing) in [
        (None, "'tc' is not installed, install the package iproute2"),
        (Some(tc.trim()), "'nft' is not installed, install the package nftables"),
    ] {
        if let Some(tc) = tools {
            std::os::unix::fs::symlink(tc, folder.join("tc")).unwrap();
        }
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--ignored", "--exact", "shapes", "--nocapture"]).env("PATH", &folder);
        scene.sender.prepare(&mut program);
        let said = String::from_utf8(program.output().unwrap().stdout).unwrap();
        assert!(said.contains(missing), "{said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(scene.rules(), before);
}

#[test]
#[ignore = "run by another test"]
fn shapes() {
    println!("{}", shaping().apply(&Hold::take(DEVICE).unwrap()).unwrap_err());
}
