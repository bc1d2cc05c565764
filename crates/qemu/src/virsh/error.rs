//! Why libvirt does not do what it is asked.

use std::time::Duration;

/// Why something could not be had from libvirt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VirshError {
    /// The program cannot be started.
    #[error("cannot start virsh: {0} (it is in the package libvirt-clients)")]
    NoVirsh(String),
    /// It does not end.
    #[error("libvirt does not answer: `virsh {command}` took longer than {} s", .after.as_secs_f64().round())]
    Silent {
        /// What was asked.
        command: String,
        /// How long was waited.
        after: Duration,
    },
    /// libvirt refused, or failed.
    #[error("libvirt refuses `virsh {command}`: {said}")]
    Refused {
        /// What was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// The answer lacks what we need.
    #[error("libvirt's answer to `virsh {command}` is not understood: {reason}")]
    NotUnderstood {
        /// What was asked.
        command: String,
        /// What is missing or wrong.
        reason: String,
    },
}

impl VirshError {
    /// Whether the VM is off, or unknown to libvirt. (It says so in words alone.)
    pub fn is_off(&self) -> bool {
        self.says(&["domain is not running", "Domain not found"])
    }

    /// Whether it is libvirt that is away: then nothing is known of the VM. A daemon that
    /// is started anew breaks what is being asked, and refuses what comes next.
    pub fn is_silent(&self) -> bool {
        matches!(self, VirshError::Silent { .. })
            || !self.is_off()
                && self.says(&[
                    "failed to connect to the hypervisor",
                    "Failed to connect socket",
                    "End of file while reading data",
                    "Cannot recv data",
                    "Cannot write data",
                    "client socket is closed",
                ])
    }

    /// Whether libvirt does not know the VM.
    pub fn is_unknown(&self) -> bool {
        self.says(&["Domain not found"])
            || self.says(&["failed to get domain"]) && !self.is_silent()
    }

    /// Whether libvirt does not understand its URI, or has no driver for it.
    pub fn is_wrong_uri(&self) -> bool {
        self.says(&[
            "URI path",
            "no connection driver available",
            "Unable to parse URI",
            "unable to parse URI",
        ])
    }

    /// Whether nobody was there to be asked: nothing has been done.
    pub fn is_away(&self) -> bool {
        self.says(&["Failed to connect socket"]) && !self.says(&["End of file"])
    }

    /// What to install or to start on this host, where it is that which is missing.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            VirshError::NoVirsh(_) => Some(
                "install virsh (Debian, Ubuntu: `apt install libvirt-clients`; Fedora, RHEL: \
                 `dnf install libvirt-client`)",
            ),
            _ if self.is_wrong_uri() => {
                Some("correct the URI: as a rule it is qemu:///system")
            }
            _ if self.is_away() && self.says(&["Permission denied"]) => Some(
                "let the daemon's user use libvirt: as a rule, put that user into the group \
                 libvirt, and start the daemon again",
            ),
            _ if self.is_away() => Some(
                "start libvirt: `systemctl start libvirtd`, or `systemctl start \
                 virtqemud.socket` where each driver has its own daemon; if there is neither, \
                 install it (Debian, Ubuntu: `apt install libvirt-daemon-system`; Fedora, \
                 RHEL: `dnf install libvirt-daemon-kvm`)",
            ),
            _ => None,
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        let VirshError::Refused { said, .. } = self else { return false };
        words.iter().any(|words| said.contains(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(said: &str) -> VirshError {
        VirshError::Refused { command: "blockjob db vda".into(), said: said.into() }
    }

    #[test]
    fn a_libvirt_that_is_away_says_nothing_of_the_machine() {
        for said in [
            "failed to connect to the hypervisor\nFailed to connect socket to \
             '/run/libvirt/libvirt-sock': Connection refused",
            "failed to get domain 'db'\nEnd of file while reading data: I/O error",
            "internal error: client socket is closed",
        ] {
            assert!(!refused(said).is_off() && refused(said).is_silent(), "{said}");
        }
    }

    #[test]
    fn it_is_said_what_to_install_or_to_start() {
        let absent = refused(
            "failed to connect to the hypervisor; Failed to connect socket to \
             '/var/run/libvirt/libvirt-sock': No such file or directory",
        );
        let remedy = |error: &VirshError| error.remedy().unwrap_or_default();
        for part in ["systemctl start libvirtd", "virtqemud", "libvirt-daemon-system"] {
            assert!(remedy(&absent).contains(part), "{}", remedy(&absent));
        }
        let denied = refused("Failed to connect socket to '/a': Permission denied");
        assert!(remedy(&denied).contains("the group libvirt"), "{}", remedy(&denied));
        let no_virsh = VirshError::NoVirsh("No such file or directory".into());
        assert!(remedy(&no_virsh).contains("libvirt-clients"), "{}", remedy(&no_virsh));
        assert_eq!(refused("Domain not found: no domain").remedy(), None);
    }

    #[test]
    fn a_wrong_uri_is_told_from_a_wrong_name() {
        for said in [
            "failed to connect to the hypervisor; internal error: unexpected QEMU URI \
             path '/sytem', try qemu:///system",
            "failed to connect to the hypervisor; no connection driver available for wbe:///",
        ] {
            let error = refused(said);
            assert!(error.is_wrong_uri() && !error.is_unknown(), "{said}");
            assert!(error.remedy().is_some_and(|it| it.contains("qemu:///system")));
        }
        let gone = refused("failed to get domain 'wbe'; End of file while reading data");
        assert!(!gone.is_unknown());
        for said in ["failed to get domain 'wbe'", "Domain not found: no domain 'wbe'"] {
            assert!(refused(said).is_unknown() && !refused(said).is_wrong_uri());
        }
    }

    #[test]
    fn a_machine_that_is_off_or_unknown_is_gone() {
        for said in [
            "Requested operation is not valid: domain is not running",
            "failed to get domain 'db'\nDomain not found: no domain with matching name",
        ] {
            assert!(refused(said).is_off() && !refused(said).is_silent(), "{said}");
        }
    }
}
