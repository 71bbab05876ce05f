// name, weights and states, body from x [64] to y [64], the head's from x to w
{"attention", "weight wq type=F32 shape=[64, 64]\nweight wk type=Q8_0 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16]",
    "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\np = position\nt = angles(p) rope=rot\nqr = "
    "rope(q, t) dims=16 halves=1\n"
    "kr = rope(k, t) dims=16 halves=1\nh = put(kr, k) state=kv\no = attention(qr, h) scale=0.25\ny = reshape(o) : [64]",
    NULL},
    {"sinks",
        "weight wq type=F32 shape=[64, 64]\nweight sinks type=F32 shape=[4]\nweight wk type=F32 shape=[32, 64]\nstate "
        "kv k=[2, 16] v=[2, 16] sees=window n=7",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\ns = weight "
        "weight=sinks\n"
        "o = attention(q, h, s) scale=0.25 softcap=5\ny = reshape(o) : [64]",
        NULL},
    {"alibi, chunks",
        "weight wq type=F32 shape=[96, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16] sees=chunk "
        "n=9\nweight wo type=F32 shape=[64, 96]",
        "q = matmul(x) weight=wq : [6, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\no = "
        "attention(q, h) scale=0.25 alibi=8\n"
        "of = reshape(o) : [96]\ny = matmul(of) weight=wo",
        NULL},
    {"sees all",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16] sees=all",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\no = "
        "attention(q, h) scale=0.25\ny = reshape(o) : [64]",
        NULL},
    {"sees around",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16] "
        "sees=around n=10",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\no = "
        "attention(q, h) scale=0.25 alibi=4\ny = reshape(o) : [64]",
        NULL},
    {"biases by distance, to both sides",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nweight near type=F32 shape=[12, 4]\n"
        "state kv k=[2, 16] v=[2, 16] sees=all",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\nb = weight "
        "weight=near\no = attention(q, h, b) scale=0.25 most=14\ny = reshape(o) : [64]",
        NULL},
    {"biases by distance, sinks, a window",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nweight near type=F32 shape=[6, 4]\n"
        "weight sinks type=F32 shape=[4]\nstate kv k=[2, 16] v=[2, 16] sees=window n=19",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\nb = weight "
        "weight=near\ns = weight weight=sinks\no = attention(q, h, s, b) scale=0.25 most=14\ny = reshape(o) : [64]",
        NULL},
    {"packed by head, norms",
        "weight wq type=F32 shape=[128, 64]\nweight wk type=F32 shape=[32, 64]\nweight nw type=F32 shape=[16]\nstate "
        "kv k=[2, 16] v=[2, 16]",
        "qg = matmul(x) weight=wq : [4, 32]\nq = slice(qg) axis=1 from=0 : [4, 16]\ng = slice(qg) axis=1 from=16 : [4, "
        "16]\nw = weight weight=nw\nqn = rms_norm(q, w) eps=1e-5\n"
        "k = matmul(x) weight=wk : [2, 16]\nkn = layer_norm(k, w, w) eps=1e-5\nh = put(kn, k) state=kv\no = "
        "attention(qn, h) scale=0.25\ns = sigmoid(g)\nog = mul(o, s)\ny = reshape(og) : [64]",
        NULL},
    {"slices and joins", "weight a type=F32 shape=[64, 64]\nweight v type=F32 shape=[3, 16]",
        "m = matmul(x) weight=a : [4, 16]\nl = slice(m) axis=1 from=0 : [4, 6]\nr = slice(m) axis=1 from=6 : [4, "
        "10]\nj = concat(r, l)\nn = l2_norm(j) eps=0.001\n"
        "up = slice(n) axis=0 from=0 : [2, 16]\nlo = slice(n) axis=0 from=2 : [2, 16]\nsp = spread(up) n=4 tiled=1\nsg "
        "= spread(lo) n=4 tiled=0\nt = mul(sp, sg)\n"
        "sum = sum(t)\nb = add(t, sum)\nall = reshape(b) : [2, 2, 16]\nmid = slice(b) axis=1 from=3 : [4, 4]\nmf = "
        "reshape(mid) : [16]\nc = add(all, mf)\n"
        "bv = weight weight=v\nb1 = slice(bv) axis=0 from=1 : const [1, 16]\nd = mul(c, b1)\nhw = reshape(sum) : [1, "
        "4, 1]\nhx = reshape(d) : [4, 4, 4]\nhy = mul(hx, hw)\ny = reshape(hy) : [64]",
        NULL},
    {"numbers by head", "weight a type=F32 shape=[64, 64]",
        "m = matmul(x) weight=a : [4, 16]\ni = index n=4\nih = reshape(i) : [4, 1]\ne = neg(ih)\nw = exp(e)\nj = "
        "index n=16\nt = mul(m, w)\nu = add(t, j)\ny = reshape(u) : [64]",
        NULL},
    {"sums over the first axis", "weight a type=F32 shape=[64, 64]\nweight c type=F32 shape=[12, 64]",
        "m = matmul(x) weight=a : [4, 16]\ncf = matmul(x) weight=c : [3, 4]\nmx = mix(cf, m)\ns = sum_first(mx)\np = "
        "softmax(cf)\np0 = slice(p) axis=0 from=1 : [1, 4]\npf = reshape(p0) : [4]\n"
        "e = mix(pf, m)\nt = add(s, e)\nmm = rmax(m)\nme = mean(m)\nz = mul(m, mm)\nzz = sub(z, me)\nyy = add(zz, "
        "t)\ny = reshape(yy) : [64]",
        NULL},
    {"tables", "weight pe type=F32 shape=[256, 64]\nweight te type=Q8_0 shape=[96, 64]",
        "p = position\ne = embed(p) weight=pe\nt = token\nhalf = param param=half\nth = mul(t, half)\nti = id(th)\nf = "
        "embed(ti) weight=te\ns = add(e, f)\nn = mul(p, s)\no = mul(n, half)\ny = tanh(o)",
        NULL},
    {"ids that no table has", // far beyond what an id can be, to both sides, and just outside
        "weight te type=Q8_0 shape=[64, 64]\nweight gate type=F32 shape=[8, 64, 64] stack=8 out=64 in=64\n"
        "weight v type=F32 shape=[8]",
        "t = token\nbig = const value=1000000000\nmid = const value=48000000000\ntb = mul(t, big)\nfar = sub(tb, mid)\n"
        "fr = reshape(far) : [1]\nfi = id(fr)\none = const value=60\nnear = sub(t, one)\nnr = reshape(near) : [1]\n"
        "ni = id(nr)\na = embed(fi) weight=te\nb = embed(t) weight=te\naf = reshape(a) : [64]\nbf = reshape(b) : [64]\n"
        "xt = tanh(x)\nf = experts(xt, fi) weight=gate : [1, 64]\nn = experts(xt, ni) weight=gate : [1, 64]\nff = reshape(f) : "
        "[64]\nnf = reshape(n) : [64]\nw = weight weight=v\ng = gather(w, fi)\nh = gather(w, ni)\nk = mul(x, g)\nl = mul(x, "
        "h)\nx8 = reshape(x) : [8, 8]\no = only(x8, ni)\nz = const value=-2\noc = max(o, z)\nof = reshape(oc) : [64]\n"
        "s0 = add(af, bf)\ns1 = add(ff, nf)\ns2 = add(k, l)\ns3 = add(s0, s1)\ns4 = add(s2, of)\ny = add(s3, s4)",
        NULL},
    {"a product added to its input", "weight wa type=F32 shape=[64, 64]",
        "y = matmul(x) weight=wa", NULL},
    {"experts",
        "weight router type=F32 shape=[8, 64] exact\nweight gate type=F32 shape=[8, 48, 64] stack=8 out=48 "
        "in=64\nweight up type=F32 shape=[8, 48, 64] stack=8 out=48 in=64\n"
        "weight down type=F32 shape=[8, 64, 48] stack=8 apart out=64 in=48\nweight bias type=F32 shape=[8, 64]",
        "l = matmul(x) weight=router\np = softmax(l)\ni = top(p) k=3\nw = gather(p, i)\ng = experts(x, i) "
        "weight=gate\nu = experts(x, i) weight=up\nsg = silu(g)\na = mul(sg, u)\n"
        "d = experts(a, i) weight=down\nb = embed(i) weight=bias\ndb = add(d, b)\ny = mix(w, db)",
        NULL},
    {"experts, packed",
        "weight router type=F32 shape=[8, 64] exact\nweight gateup type=Q8_0 shape=[8, 128, 64] stack=8 out=128 in=64 "
        "parts=[64 64]\n"
        "weight down type=Q8_0 shape=[8, 64, 64] stack=8 out=64 in=64\nweight bias type=F32 shape=[8, 128]",
        "l = matmul(x) weight=router\ng2 = reshape(l) : [4, 2]\ng1 = rmax(g2)\ngf = reshape(g1) : [4]\ngi = top(gf) "
        "k=2\nkeep = only(g2, gi)\nkf = reshape(keep) : [8]\ni = top(kf) k=2\nw0 = gather(l, i)\nw = sigmoid(w0)\n"
        "ws = reshape(w) : [2, 1]\nxk = mul(ws, x)\ngu0 = experts(xk, i) weight=gateup\nb = embed(i) weight=bias\ngu = "
        "add(gu0, b)\ng = slice(gu) axis=1 from=0 : [2, 64]\nu = slice(gu) axis=1 from=64 : [2, 64]\n"
        "sg = gelu(g)\na = mul(sg, u)\nd = experts(a, i) weight=down\ny = sum_first(d)",
        NULL},
    {"experts, gate and up apart",
        "weight router type=F32 shape=[6, 64] exact\nweight gate type=Q8_0 shape=[6, 32, 64] stack=6 out=32 "
        "in=64\nweight up type=Q8_0 shape=[6, 32, 64] stack=6 out=32 in=64\n"
        "weight down type=Q8_0 shape=[6, 64, 32] stack=6 out=64 in=32",
        "l = matmul(x) weight=router\ni = top(l) k=2\nv = gather(l, i)\nw = softmax(v)\ng = experts(x, i) "
        "weight=gate\nu = experts(x, i) weight=up\nsg = silu(g)\na = mul(sg, u)\n"
        "d = experts(a, i) weight=down\ny = mix(w, d)",
        NULL},
    {"each",
        "weight a type=F32 shape=[64, 64]\nweight kb type=F32 shape=[4, 24, 16] stack=4 out=24 in=16\nweight vb "
        "type=Q8_0 shape=[4, 16, 32] stack=4 out=16 in=32\nweight all type=F32 shape=[2, 32, 64] stack=2 out=32 "
        "in=64\nweight bias type=F32 shape=[4, 24]",
        "m = matmul(x) weight=a : [4, 16]\ne = each(m) weight=kb\nb = weight weight=bias\neb = add(e, b)\nt = each(x) "
        "weight=all\ntt = reshape(t) : [64]\ns = slice(tt) axis=0 from=0 : [32]\n"
        "o = slice(eb) axis=1 from=0 : [4, 8]\nc = concat(eb, o)\nf = add(c, s)\nv = each(f) weight=vb\ny = reshape(v) "
        ": [64]",
        NULL},
    {"latent",
        "weight wq type=F32 shape=[80, 64]\nweight wk type=F32 shape=[20, 64]\nstate lat k=[1, 20]\nweight wo type=F32 "
        "shape=[64, 56]",
        "q = matmul(x) weight=wq : [4, 20]\nk = matmul(x) weight=wk : [1, 20]\nh = put(k) state=lat\no = attention(q, "
        "h) scale=0.25 v_from=2 v_width=14\nof = reshape(o) : [56]\ny = matmul(of) weight=wo",
        NULL},
    {"latent, many heads",
        "weight wq type=F32 shape=[384, 64]\nweight wk type=Q8_0 shape=[32, 64]\nstate lat k=[1, 32] sees=window "
        "n=11\nweight wo type=F32 shape=[64, 192]",
        "q = matmul(x) weight=wq : [12, 32]\nk = matmul(x) weight=wk : [1, 32]\nh = put(k) state=lat\no = attention(q, "
        "h) scale=0.25 v_from=0 v_width=16\nof = reshape(o) : [192]\ny = matmul(of) weight=wo",
        NULL},
    {"shift and conv",
        "weight a type=F32 shape=[64, 64]\nweight taps type=F32 shape=[64, 4]\nweight bias type=F32 shape=[64]\nstate "
        "cv kind=tail k=[64] n=3\nstate one kind=tail k=[4, 16] n=1\nweight t1 type=F32 shape=[4, 16, 2]",
        "m = matmul(x) weight=a\nw = shift(m) state=cv\nc = weight weight=taps\nv = conv(w, c)\nb = weight "
        "weight=bias\nvb = add(v, b)\ns = silu(vb)\nh = reshape(s) : [4, 16]\n"
        "o = shift(h) state=one\nc1 = weight weight=t1\nu = conv(o, c1)\nold = slice(o) axis=0 from=0 : [1, 4, "
        "16]\noldf = reshape(old) : [4, 16]\nd = sub(u, oldf)\ny = reshape(d) : [64]",
        NULL},
    {"hash and conv of every third",
        "weight a type=F32 shape=[64, 64]\nweight te type=F32 shape=[96, 16]\nstate seen kind=tail k=[1] n=2\n"
        "state cv kind=tail k=[64] n=6\nweight taps type=F32 shape=[64, 3]",
        "t = token\nt1 = reshape(t) : i32 [1]\nc = const value=1\ntf = mul(t1, c)\nw = shift(tf) state=seen\nwf = "
        "reshape(w) : [3]\ni = id(wf)\nh = hash(i) by=fac mod=rem plus=base\ne = embed(h) weight=te\nef = reshape(e) : "
        "[64]\n"
        "m = matmul(x) weight=a\ns = add(m, ef)\nd = shift(s) state=cv\nk = weight weight=taps\ny = conv(d, k) every=3",
        NULL},
    {"recur, delta rule",
        "weight wk type=F32 shape=[32, 64]\nweight wv type=F32 shape=[48, 64]\nweight wd type=F32 shape=[4, 64] "
        "exact\nstate M kind=cell k=[4, 8, 12]\nweight wo type=F32 shape=[64, 48]",
        "k0 = matmul(x) weight=wk : [4, 8]\nk = l2_norm(k0) eps=1e-6\nv = matmul(x) weight=wv : [4, 12]\nd0 = "
        "matmul(x) weight=wd\nd1 = reshape(d0) : [4, 1]\nw = sigmoid(d1)\n"
        "bk = mul(w, k)\nnk = neg(bk)\no = recur(w, bk, v, k, bk, nk) state=M\nof = reshape(o) : [48]\ny = matmul(of) "
        "weight=wo",
        NULL},
    {"recur, before",
        "weight wk type=F32 shape=[32, 64]\nweight wv type=F32 shape=[32, 64]\nweight wd type=F32 shape=[32, "
        "64]\nweight decay type=F32 shape=[4, 8]\nstate M kind=cell k=[4, 8, 8]\nweight wo type=F32 shape=[64, 32]",
        "k = matmul(x) weight=wk : [4, 8]\nv = matmul(x) weight=wv : [4, 8]\nr = matmul(x) weight=wd : [4, 8]\ndw = "
        "weight weight=decay\nds = sigmoid(dw)\n"
        "o = recur(ds, k, v, r) state=M before=1\nof = reshape(o) : [32]\ny = matmul(of) weight=wo",
        NULL},
    {"recur, channels with rates",
        "weight wb type=F32 shape=[10, 64]\nweight dt type=F32 shape=[64, 64]\nweight A type=F32 shape=[64, 5]\nstate "
        "M kind=cell k=[64, 5, 1]",
        "bc = matmul(x) weight=wb\nb = slice(bc) axis=0 from=0 : [5]\nc = slice(bc) axis=0 from=5 : [5]\nd0 = "
        "matmul(x) weight=dt\nd1 = softplus(d0)\nt = const value=0.001\nd2 = mul(d1, t)\nd = reshape(d2) : "
        "[64, 1]\na = weight weight=A\n"
        "da = mul(d, a)\nw = exp(da)\nxc = reshape(x) : [64, 1]\no = recur(w, b, xc, c) state=M\ny = reshape(o) : [64]",
        NULL},
    {"recur, channels",
        "weight wb type=F32 shape=[10, 64]\nweight dt type=F32 shape=[64, 64]\nweight A type=F32 shape=[64, 5]\nstate "
        "M kind=cell k=[64, 5, 1]",
        "bc = matmul(x) weight=wb\nb = slice(bc) axis=0 from=0 : [5]\nc = slice(bc) axis=0 from=5 : [5]\nd0 = "
        "matmul(x) weight=dt\nd1 = softplus(d0)\nd = reshape(d1) : [64, 1]\na = weight weight=A\n"
        "da = mul(d, a)\nan = abs(da)\nna = neg(an)\nw = exp(na)\nxc = reshape(x) : [64, 1]\ndx = mul(d, xc)\no = "
        "recur(w, b, dx, c) state=M\ny = reshape(o) : [64]",
        NULL},
    {"pick",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16]\nweight iq "
        "type=F32 shape=[48, 64] exact\nweight ik type=F32 shape=[12, 64] exact\nweight iw type=F32 shape=[4, 64] "
        "exact\nstate idx k=[1, 12]",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\na = matmul(x) "
        "weight=iq : [4, 12]\nb = matmul(x) weight=ik : [1, 12]\nw = matmul(x) weight=iw\n"
        "g = put(b) state=idx\ns = pick(a, g, w) top=6 block=1\no = attention(q, h, s) scale=0.25\ny = reshape(o) : "
        "[64]",
        NULL},
    {"pick blocks",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16]\nweight iq "
        "type=F32 shape=[24, 64] exact\nweight ik type=F32 shape=[12, 64] exact\nstate idx k=[1, 12]\nweight sinks "
        "type=F32 shape=[4]",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\na = matmul(x) "
        "weight=iq : [2, 12]\nb = matmul(x) weight=ik : [1, 12]\n"
        "g = put(b) state=idx\ns = pick(a, g) top=3 block=4 local=1\nz = weight weight=sinks\no = attention(q, h, z, "
        "s) scale=0.25 block=4\ny = reshape(o) : [64]",
        NULL},
    {"blends and records",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[16, 64]\nweight wv type=F32 shape=[64, 64]\n"
        "weight ws type=F32 shape=[64, 64]\nweight sinks type=F32 shape=[4]\nstate near k=[1, 16] sees=window n=7\n"
        "state raw kind=blend k=[2, 32] n=3\nstate far k=[1, 16] sees=past every=3\nweight wr type=F32 shape=[16, 32]",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [1, 16]\nh = put(k) state=near\nv = matmul(x) "
        "weight=wv : [2, 32]\ns = matmul(x) weight=ws : [2, 32]\nb = blend(v, s) state=raw\nc = matmul(b) weight=wr : "
        "[1, 16]\np = position\nt = angles(p) rope=rot\nt2 = angles(p) rope=rot back=2\nqr = rope(q, t) dims=16 "
        "halves=1\ncr = rope(c, t2) dims=16 halves=1\ng = put(cr) state=far\nz = weight weight=sinks\no = "
        "attention(qr, h, g, z) scale=0.25\nu = rope(o, t) dims=16 halves=1 inverse=1\nw = rope(u, t) dims=16 halves=0 "
        "inverse=1\ny = reshape(w) : [64]",
        NULL},
    {"picked records",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[16, 64]\nweight iq type=F32 shape=[48, 64] "
        "exact\nweight ik type=F32 shape=[12, 64] exact\nweight iw type=F32 shape=[4, 64] exact\nstate near k=[1, 16] "
        "sees=chunk n=5\nstate far k=[1, 16] sees=past every=4\nstate idx k=[1, 12] sees=past every=4",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [1, 16]\nh = put(k) state=near\ng = put(k) "
        "state=far\na = matmul(x) weight=iq : [4, 12]\nb = matmul(x) weight=ik : [1, 12]\nw = matmul(x) weight=iw\ni = "
        "put(b) state=idx\ns = pick(a, i, w) top=3 block=1\no = attention(q, h, g, s) scale=0.25 softcap=2 block=1\n"
        "y = reshape(o) : [64]",
        NULL},
    {"picked pools and the rest",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16]\nweight iq "
        "type=F32 shape=[48, 64] exact\nweight ik type=F32 shape=[12, 64] exact\nweight iw type=F32 shape=[4, 64] "
        "exact\nstate idx k=[1, 12] sees=past every=4\nstate pool kind=blend k=[1, 12] n=4",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\na = matmul(x) "
        "weight=iq : [4, 12]\nb = matmul(x) weight=ik : [1, 12]\nw = matmul(x) weight=iw\nm = blend(b, b) state=pool\n"
        "m1 = reshape(m) : [1, 12]\ni = put(m1) state=idx\ns = pick(a, i, w) top=2 block=1 rest=1\n"
        "o = attention(q, h, s) scale=0.25 block=4\ny = reshape(o) : [64]",
        NULL},
    {"pool",
        "weight wq type=F32 shape=[64, 64]\nweight wk type=F32 shape=[32, 64]\nstate kv k=[2, 16] v=[2, 16] sees=all",
        "q = matmul(x) weight=wq : [4, 16]\nk = matmul(x) weight=wk : [2, 16]\nh = put(k, k) state=kv\no = "
        "attention(q, h) scale=0.25\ny = reshape(o) : [64]",
        "m = pool(x) how=0\nf = pool(x) how=1\nl = pool(x) how=2\nml = add(m, l)\nw = sub(ml, f)"},
    {"parts by layer", "weight a type=F32 shape=[192, 64]",
        "m = matmul(x) weight=a : [3, 4, 16]\np = at(m) param=which\nq = reshape(m) : [3, 64]\ns = at(q) "
        "param=which\nr = reshape(s) : [4, 16]\nd = mul(p, r)\ny = reshape(d) : [64]",
        NULL},
