"""K-means, a random forest, support vectors, logistic regression, PCA and gradient boosting (OpenMP threads)."""
# needs: sklearn

import numpy as np
from show import show
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

rng = np.random.default_rng(15)
x = rng.standard_normal((200, 8))
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
show("k-means", KMeans(4, n_init=2, random_state=0).fit(x).cluster_centers_)
show("forest", RandomForestClassifier(10, random_state=0, n_jobs=2).fit(x, y).predict_proba(x))
show("svc", SVC().fit(x, y).decision_function(x))
show("logistic", LogisticRegression().fit(x, y).coef_)
show("pca", PCA(3).fit_transform(x))
show("boosting", HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(x, y).predict_proba(x))
