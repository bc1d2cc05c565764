//! x
use sterna_sim::fluid::nas250;
#[test]
fn e2() {
    for text in [nas250::ONE, nas250::WAVES] {
    let start = std::time::Instant::now();
    let o = nas250::run(text);
    for p in &o.phases { println!("{} {:.1} min copied {:.0} GiB {:.0} MB/s written {:.2} held {}/{} least {:?} busy {:?} pred {:?}", p.name, p.seconds()/60., p.copied/1073741824., p.copied/p.seconds()/1e6, p.written/p.copied, p.held,p.working,p.least,p.busy,p.predicted); 
      let r: f64 = p.profiles.iter().map(|d| d.seconds).sum::<f64>() / p.profiles.iter().map(|d| d.requests).sum::<f64>(); println!("   response {:.1} ms", r*1e3);}
    println!("stuck {} settled {} {:?}", o.stuck, o.settled, start.elapsed());
    }
}
